import ArgumentParser
import HubConfiguration
import HubDefinitions
import HubServer

/// `tandem check`: lists the errors of the configuration and the definitions, without starting the hub.
struct Check: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Validate the configuration, the channel definitions and the credentials.",
        discussion: """
            Exits with 0 if all is good. 78 is a mistake in a file, or a refusal of a server or gateway. 1 means that one could not be \
            asked.

            Examples:
              tandem check --config /etc/tandem/tandem.yaml
              tandem check --config /etc/tandem/tandem.yaml --live
            """)

    @OptionGroup var options: ConfigurationOptions
    @Flag(name: .long, help: "Also ask PostgreSQL, Redis, and the push gateways about the credentials; no device gets anything.")
    var live = false

    func run() async throws {
        do {
            let configuration = try options.load(flags: ConfigurationFlags())
            let (definitions, folder) = try loadDefinitions(configuration)
            try Server.checkCredentials(configuration)
            try Server.checkBackplane(configuration)
            let certificate = try Server.checkCertificate(configuration)
            print("configuration: good (\(configuration.apps.count) app\(configuration.apps.count == 1 ? "" : "s"))")
            print(
                "channel definitions: good (\(definitions.names.isEmpty ? "none" : definitions.names.joined(separator: ", ")); \(folder ?? "no folder"))"
            )
            if let certificate {
                print("TLS certificate: \(certificate.warnings.isEmpty ? "good" : "usable") (\(certificate.text))")
                for warning in certificate.warnings { print("warning: \(warning)") }
            }
            for warning in configuration.warnings + SecretFiles.warnings(configuration) { print("warning: \(warning)") }
            for key in configuration.notYetInForce { print("not yet in force: \(key)") }
            if live { try await ask(configuration) }
        } catch {
            throw Tandem.fail(error)
        }
    }

    private func ask(_ configuration: Configuration) async throws(ServerError) {
        let check = try await LiveCheck.run(configuration)
        if check.lines.isEmpty { print("push: no gateway is configured, so there is none to ask") }
        for line in check.lines + check.serverLines { print(line) }
        if let error = check.error { throw error }
    }
}
