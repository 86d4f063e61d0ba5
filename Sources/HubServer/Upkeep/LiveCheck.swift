package import HubConfiguration
internal import HubDelivery
internal import HubPush
internal import HubScaleOut
internal import HubStorage
internal import Logging

/// The answers of the push gateways about the credentials, and of servers that keep the store and join nodes: `tandem check --live`.
package struct LiveCheck: Sendable, Equatable {
    /// One line per gateway, environment and credential: the question, the answer, the remedy.
    package var lines: [String] = []
    /// Lines of the store, if it is a server, and of the backplane's servers.
    package var serverLines: [String] = []
    /// Whether the store's or the backplane's server did not answer.
    package var hasFailedServer = false
    /// Whether such a server can only be used with another setting.
    package var hasRefusedServer = false
    /// Credentials, topics or projects that a gateway refused.
    package var refused = 0
    /// Gateways that did not answer, or gave an unexpected answer.
    package var failed = 0

    /// Sends one harmless request to each gateway; no device gets anything.
    /// - Throws: `badConfiguration` if a credential cannot be read.
    package static func run(_ configuration: Configuration) async throws(ServerError) -> LiveCheck {
        let checks: CredentialChecks
        do throws(PushConfigurationError) {
            checks = try CredentialChecks(
                try Server.credentials(configuration), time: SystemTime(),
                logger: Logger(label: "tandem.check") { _ in SwiftLogNoOpLogHandler() })
        } catch {
            throw ServerError(.badConfiguration, "\(error)")
        }
        var check = LiveCheck(await checks.run())
        let redis = try Server.redis(configuration)
        var database: String?
        if case .postgres(let address) = configuration.store.value {
            database = await check.askStore(address, name: configuration.storeName)
        }
        if let redis { await check.askBackplane(redis, database: database) }
        return check
    }

    /// - Returns: the identity of the database, if it is known.
    private mutating func askStore(_ address: String, name: String) async -> String? {
        do throws(StorageError) {
            let answer = try await PostgresCheck.ask(address) { SystemTime().wallMilliseconds }
            serverLines += ["good: store (\(name)): \(answer.facts)"] + answer.warnings.map { "warning: store: \($0)" }
            return answer.database.identity
        } catch {
            note("store (\(name)): \(error)", isRefused: [.otherPartitions, .newerSchema].contains(error.code))
            return nil
        }
    }

    private mutating func askBackplane(_ address: RedisAddress, database: String?) async {
        for shard in 0..<address.shardCount {
            let name = "backplane (\(address.name(of: shard)))"
            do throws(RedisFailure) {
                let answer = try await RedisCheck.ask(address, shard: shard, database: database) { SystemTime().wallMilliseconds }
                serverLines += ["good: \(name): \(answer.facts)"] + answer.warnings.map { "warning: \(name): \($0)" }
            } catch {
                note("\(name): \(error.sentence)", isRefused: error.isMistake)
            }
        }
    }

    private mutating func note(_ line: String, isRefused: Bool) {
        serverLines.append("\(isRefused ? "refused" : "failed"): \(line)")
        if isRefused { hasRefusedServer = true } else { hasFailedServer = true }
    }

    init(_ answers: [CredentialChecks.Answer]) {
        for answer in answers {
            let name = [answer.provider == .apns ? "APNs" : "FCM", answer.environment?.rawValue].compactMap { $0 }.joined(separator: " ")
            let check = answer.check
            var verdict: String
            switch check.verdict {
            case .good: verdict = "good"
            case .failed:
                verdict = "failed"
                failed += 1
            case .otherEnvironmentOnly
            where answers.contains(where: { $0.place == answer.place && $0.provider == .apns && $0.check.verdict == .good }):
                // A key for one environment is a choice, as long as another key works in the other.
                verdict = "unusable"
            case .refused, .otherEnvironmentOnly:
                verdict = "refused"
                refused += 1
            }
            verdict += ": \(name) (\(answer.place)): asked \(check.asked); answered \(check.answered)"
            if let advice = check.advice { verdict += "; \(advice)" }
            lines.append(verdict)
        }
    }

    /// Error for the process's end; nil if every gateway accepts the credentials.
    package var error: ServerError? {
        if refused > 0 {
            return ServerError(
                .badConfiguration,
                "\(refused) of \(lines.count) push gateways refuse the credentials: see the lines that begin with refused")
        }
        if failed > 0 {
            return ServerError(
                .failed, "\(failed) of \(lines.count) push gateways could not be asked: see the lines that begin with failed")
        }
        if hasRefusedServer {
            return ServerError(.badConfiguration, "the store or the backplane cannot be used: see the lines that begin with refused")
        }
        if hasFailedServer {
            return ServerError(.failed, "the store or the backplane could not be asked: see the lines that begin with failed")
        }
        return nil
    }
}
