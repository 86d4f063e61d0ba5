internal import HubCore
internal import HubDelivery
internal import HubTransport
internal import Logging

/// What a running server takes up anew: certificate, key and channel definitions, from where the configuration says. Each
/// stays as it is when its files are bad, and nobody is disconnected.
extension Server {
    /// Reads the files again. Returns when what was good in them is in force everywhere.
    package func reload(_ configuration: Configuration) async {
        reloadCertificate(configuration)
        await reloadDefinitions(configuration)
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
        do throws(ServerError) {
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
