import ArgumentParser
import LoadTesting

struct Crowd: ScenarioCommand {
    static let configuration = CommandConfiguration(
        commandName: "crowd",
        abstract: "One channel, very many subscribers: how fast they are let in, what they cost idle, when the last has an event.")
    static let defaults = LoadOptions.Defaults(connections: 10_000, channel: "private-crowd", rate: 2)
    @OptionGroup var load: LoadOptions
    @Option(name: .long, help: "Connections that are being opened at any time.") var opening = CrowdScenario.openingDefault

    func validate() throws {
        guard (1...RunOptions.connectionsMax).contains(opening) else {
            throw ValidationError("--opening is 1 to \(RunOptions.connectionsMax), not \(opening)")
        }
    }

    func scenario() -> any Scenario { CrowdScenario(opening: opening) }
}
