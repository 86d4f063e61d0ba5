import ArgumentParser
import LoadTesting

struct Mixed: ScenarioCommand {
    static let configuration = CommandConfiguration(
        commandName: "mixed", abstract: "A quiz evening: questions to all, answers as client events, scores, people who leave and return.",
        discussion: "--connections players in --channels sessions.")
    static let defaults = LoadOptions.Defaults(connections: 400, channels: 20, channel: "presence-evening")
    @OptionGroup var load: LoadOptions
    @Option(name: .long, help: "Seconds from one question of a session to the next.") var questionEvery = 4.0
    @Option(name: .long, help: "Players who leave per second; each is back after one. A hundredth of all unless you say so.")
    var leavingRate: Double?

    func validate() throws {
        if load.rate != nil || load.outstanding != nil {
            throw ValidationError("an evening's pace is --question-every and --leaving-rate, not --rate or --outstanding")
        }
        guard (0.5...3600).contains(questionEvery) else { throw ValidationError("--question-every is 0.5 to 3600, not \(questionEvery)") }
        if let leavingRate, !(0...LoadOptions.rateMax).contains(leavingRate) {
            throw ValidationError("--leaving-rate is not \(leavingRate)")
        }
    }

    func scenario() -> any Scenario {
        let players = Double(load.connections ?? Self.defaults.connections)
        return MixedScenario(.init(questionEvery: questionEvery, leavingRate: leavingRate ?? players / 100))
    }

    func adjust(_ options: inout RunOptions) { options.publishers = 4 }
}

struct Push: ScenarioCommand {
    static let configuration = CommandConfiguration(
        commandName: "push", abstract: "One event for --devices people who are away: pushes per second at the simulated gateways.",
        discussion: "Tandem only. The hub has to use the gateways, and the bundled definition quiz.")
    static let defaults = LoadOptions.Defaults()
    @OptionGroup var load: LoadOptions
    @Option(name: .long, help: "The control service of tandem-gateways, as TANDEM_GATEWAYS_CONTROL says it: http://127.0.0.1:PORT.")
    var gateways: String
    @Option(name: .long, help: "Whose devices: fcm or apns.") var provider = "fcm"
    @Option(name: .long, help: "How many people, with one device each.") var devices = 1000

    func validate() throws {
        guard devices >= 1 else { throw ValidationError("--devices is at least 1, not \(devices)") }
        if load.connections != nil { throw ValidationError("nobody is connected here: say --devices") }
    }

    func scenario() throws -> any Scenario { try PushScenario(gateways: gateways, provider: provider) }

    func adjust(_ options: inout RunOptions) { options.connections = devices }
}
