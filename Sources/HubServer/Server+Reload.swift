package import HubConfiguration
internal import HubCore
internal import HubDefinitions
internal import HubPush
internal import HubTransport
internal import Logging

/// Files that a running server reads again. Certificate, key and channel definitions are read at the places configured at the start, apps
/// and push credentials at today's. Bad files leave the former ones in force.
extension Server {
    /// Reads the files again. Returns once all good ones are in force everywhere.
    /// - Parameters:
    ///   - configuration: the configuration at the start.
    ///   - current: the configuration file of today, used for apps and push credentials only; nil if unreadable.
    package func reload(_ configuration: Configuration, current: Configuration?) async {
        reloadCertificate(configuration)
        if let current {
            reloadPush(current)
            let changed = await apps.replaceFileApps(current.apps)
            logger.notice("apps of the configuration reloaded", metadata: ["apps": "\(current.apps.count)", "changed": "\(changed)"])
        }
        await reloadDefinitions(configuration)
    }

    private func reloadPush(_ configuration: Configuration) {
        do throws(PushConfigurationError) {
            let retired = try gateway.replace(try Self.credentials(configuration))
            logger.notice(
                "push credentials reloaded", metadata: ["push.lanes": "\(gateway.laneCount)", "push.lanes_retired": "\(retired)"])
        } catch {
            logger.error("push credentials not reloaded: the former ones stay in force", metadata: ["error": "\(error)"])
        }
    }

    private func reloadCertificate(_ configuration: Configuration) {
        do throws(ServerError) {
            guard let certificate = try Self.certificate(configuration) else { return }
            loops.replace(certificate)
            let summary = CertificateSummary(certificate, now: SystemTime().wallSeconds)
            logger.notice("TLS certificate reloaded: new connections get it", metadata: ["certificate": "\(summary.text)"])
            for warning in summary.warnings { logger.warning("\(warning)") }
        } catch {
            logger.error("TLS certificate not reloaded: the former one stays in force", metadata: ["error": "\(error)"])
        }
    }

    private func reloadDefinitions(_ configuration: Configuration) async {
        do throws(DefinitionFiles.Failure) {
            let folder = DefinitionFiles.folder(configured: configuration.channels.value)
            var definitions = DefinitionSet.empty
            if let folder { definitions = try DefinitionFiles.load(folder: folder) }
            let changed = definitions.names(differingFrom: delivery.currentDefinitions)
            await delivery.change(to: definitions)
            logger.notice(
                "channel definitions reloaded",
                metadata: [
                    "folder": "\(folder ?? "none")", "definitions": "\(definitions.names.joined(separator: ", "))",
                    "changed": "\(changed.isEmpty ? "none" : changed.joined(separator: ", "))",
                ])
        } catch {
            logger.error("channel definitions not reloaded: the former ones stay in force", metadata: ["error": "\(error)"])
        }
    }
}
