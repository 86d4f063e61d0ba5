import ArgumentParser
import HubConfiguration
import HubCore
import HubDefinitions
import HubServer

/// `tandem doctor`: looks at the machine, the files and everything that the hub needs from elsewhere.
struct Doctor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Look for what keeps a hub from its work, and say what to do about it.",
        discussion: """
            Looks at descriptors, backlog, memory, disk and clock of this machine, at configuration, definitions and certificate, and \
            asks the store, the backplane and the push gateways. No device gets anything. With --public it asks the hub by the address \
            that clients use, through every proxy in between, and checks the certificate as they do. It also holds a WebSocket there \
            without a word until the hub pings (ping_interval, 15 s): a proxy with a shorter time-out would end all silent clients.

            Prints a line for each: good, warning or problem, with its remedy. Exits with 0 without a problem. 78 is a mistake in a \
            file, or a refusal. 1 is any other problem.

            Examples:
              sudo -u tandem tandem doctor --config /etc/tandem/tandem.yaml
              tandem doctor --config tandem.yaml --public https://hub.example.com
            """)

    @OptionGroup var options: ConfigurationOptions
    @Option(name: .long, help: ArgumentHelp("Address of the hub for its clients.", valueName: "url")) var `public`: String?

    func run() async throws {
        do throws(ServerError) {
            let configuration = try options.load(flags: ConfigurationFlags())
            let (definitions, folder) = try loadDefinitions(configuration)
            try Server.checkCredentials(configuration)
            try Server.checkBackplane(configuration)
            print("good: configuration, and \(definitions.names.count) channel definitions in \(folder ?? "no folder")")
            for warning in configuration.warnings + SecretFiles.warnings(configuration) { print("warning: \(warning)") }
            var findings = Examination.findings(configuration, MachineFacts.now(for: configuration))
            if let certificate = try Server.checkCertificate(configuration) {
                findings += Examination.certificate(certificate, now: SystemTime().wallSeconds)
            }
            for finding in findings { print(finding.text) }
            let live = try await LiveCheck.run(configuration)
            for line in live.lines + live.serverLines { print(line) }
            if let error = live.error { throw error }
            if let `public` {
                let finding = try await askPublic(`public`, configuration)
                print(finding.text)
                findings.append(finding)
            }
            let count = findings.count { $0.level == .problem }
            if count > 0 { throw ServerError(.failed, "\(count) problem\(count == 1 ? "" : "s"): see the lines that begin with problem") }
        } catch {
            throw Tandem.fail(error)
        }
    }

    /// Time that the hub's ping may take beyond its interval.
    private static let pingSlack: Duration = .seconds(5)

    private func askPublic(_ url: String, _ configuration: Configuration) async throws(ServerError) -> Finding {
        var hub = HubAddress()
        hub.url = url
        let address = try hub.resolved()
        let began = ContinuousClock.now
        try await HealthProbe(url: "\(address)/ready", timeout: 10).ask()
        let took = began.duration(to: .now) / .milliseconds(1)
        print("good: \(address) is ready, and answers after \(Int(took)) ms")
        guard let app = configuration.apps.first, let key = app.credentials.first?.key else {
            return Examination.silence(.refused("no app in the configuration has a key to try it with"), pingInterval: .zero)
        }
        let silence = await SilenceProbe(url: address, key: key, most: app.pingInterval + Self.pingSlack).hold()
        return Examination.silence(silence, pingInterval: app.pingInterval)
    }
}
