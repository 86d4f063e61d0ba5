package import HubConfiguration
internal import HubDelivery
internal import HubPush
internal import HubStorage
internal import Logging

/// The answers of the push gateways about the credentials, and of a store that is a server: `tandem check --live`.
package struct LiveCheck: Sendable, Equatable {
    /// One line per gateway, environment and credential: the question, the answer, the remedy.
    package var lines: [String] = []
    /// Lines of the store, if it is a server.
    package var storeLines: [String] = []
    /// Whether the store's server did not answer, or refused.
    package var hasFailedStore = false
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
        if case .postgres(let address) = configuration.store.value { await check.askStore(address, name: configuration.storeName) }
        return check
    }

    private mutating func askStore(_ address: String, name: String) async {
        do {
            let answer = try await PostgresCheck.ask(address)
            storeLines = ["good: store (\(name)): \(answer.facts)"] + answer.warnings.map { "warning: store: \($0)" }
        } catch {
            storeLines = ["failed: store (\(name)): \(error)"]
            hasFailedStore = true
        }
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
        if hasFailedStore { return ServerError(.failed, "the store could not be asked: see the line that begins with failed") }
        return nil
    }
}
