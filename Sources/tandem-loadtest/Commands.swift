import ArgumentParser
import LoadTesting

struct Fanout: ScenarioCommand {
    static let configuration = CommandConfiguration(
        commandName: "fanout", abstract: "One channel, many subscribers: what arrives, how late, at what cost. With many --seconds a soak.")
    static let defaults = LoadOptions.Defaults()
    @OptionGroup var load: LoadOptions

    func scenario() -> any Scenario { FanoutScenario() }
}

struct Rooms: ScenarioCommand {
    static let configuration = CommandConfiguration(
        commandName: "rooms", abstract: "Many channels of few subscribers, publishes spread over them.")
    static let defaults = LoadOptions.Defaults(connections: 1000, channels: 100, channel: "room", rate: 500)
    @OptionGroup var load: LoadOptions

    func scenario() -> any Scenario { FanoutScenario() }
}

struct Churn: ScenarioCommand {
    static let configuration = CommandConfiguration(
        commandName: "churn", abstract: "Connections come, subscribe to a private channel and go at --rate a second; or all at once.",
        discussion: "Beside them --connections subscribers of another channel are published to, and their latency is stated.")
    static let defaults = LoadOptions.Defaults(connections: 100, channels: 10, channel: "private-churn", rate: 100)
    @OptionGroup var load: LoadOptions
    @Option(name: .long, help: "Seconds that each stays.") var stay = 2.0
    @Option(name: .long, help: "Instead: so many clients are cut off all at once, and come back.") var storm: Int?
    @Option(name: .long, help: "Publishes per second to the channel beside.") var publishRate = 20.0

    func validate() throws {
        if load.outstanding != nil { throw ValidationError("connections come at a rate: say --rate, not --outstanding") }
        guard (0.01...3600).contains(stay) else { throw ValidationError("--stay is 0.01 to 3600, not \(stay)") }
        guard (0.01...LoadOptions.rateMax).contains(publishRate) else { throw ValidationError("--publish-rate is not \(publishRate)") }
        if let storm, !(1...RunOptions.connectionsMax).contains(storm) { throw ValidationError("--storm is not \(storm)") }
        if storm != nil, load.rate != nil { throw ValidationError("--storm cuts all off at once: it has no --rate") }
    }

    func scenario() -> any Scenario {
        ChurnScenario(
            storm.map { .storm(clients: $0) } ?? .steady(rate: load.rate ?? Self.defaults.rate, stay: stay), publishRate: publishRate)
    }

    /// Reserves descriptors for the connections that come and go.
    func adjust(_ options: inout RunOptions) {
        options.beside = storm ?? Int((load.rate ?? Self.defaults.rate) * (stay + 10))
    }
}

struct PresenceStorm: ScenarioCommand {
    static let configuration = CommandConfiguration(
        commandName: "presence-storm",
        abstract: "Members join and leave one presence channel at --rate a second; --connections stay and hear it.",
        discussion: "The server has to allow rate * stay more members than --connections (Tandem: presence_members_max, 100 by default).")
    static let defaults = LoadOptions.Defaults(connections: 50, channel: "presence-storm", rate: 10)
    @OptionGroup var load: LoadOptions
    @Option(name: .long, help: "Seconds that each is a member.") var stay = 2.0

    func validate() throws {
        guard (0.01...3600).contains(stay) else { throw ValidationError("--stay is 0.01 to 3600, not \(stay)") }
    }

    func scenario() -> any Scenario { PresenceScenario(stay: stay) }

    func adjust(_ options: inout RunOptions) {
        options.beside = Int((load.rate ?? Self.defaults.rate) * stay) + 100
    }
}

struct Publish: ScenarioCommand {
    static let configuration = CommandConfiguration(
        commandName: "publish", abstract: "Publishes to channels without subscribers: what a publish itself costs.")
    static let defaults = LoadOptions.Defaults(connections: 0, channels: 10, channel: "empty", rate: 500)
    @OptionGroup var load: LoadOptions
    @Option(name: .long, help: "Run a fan-out to so many subscribers beside it.") var underFanout: Int?
    @Option(name: .long, help: "Publishes per second of that fan-out.") var fanoutRate = 5.0

    func validate() throws {
        if load.connections != nil {
            throw ValidationError("nobody is subscribed here; subscribers of a fan-out beside it: --under-fanout")
        }
        if let underFanout, !(1...RunOptions.connectionsMax).contains(underFanout) {
            throw ValidationError("--under-fanout is not \(underFanout)")
        }
        guard (0.01...LoadOptions.rateMax).contains(fanoutRate) else { throw ValidationError("--fanout-rate is not \(fanoutRate)") }
    }

    func scenario() -> any Scenario { PublishScenario(fanoutRate: fanoutRate) }

    func adjust(_ options: inout RunOptions) { options.connections = underFanout ?? 0 }
}

struct ClientEvents: ScenarioCommand {
    static let configuration = CommandConfiguration(
        commandName: "client-events", abstract: "Connections tell each other something by client events, --rate a second in all.")
    static let defaults = LoadOptions.Defaults(connections: 200, channels: 20, channel: "private-talk", rate: 200)
    @OptionGroup var load: LoadOptions

    func scenario() -> any Scenario { ClientEventScenario() }
}
