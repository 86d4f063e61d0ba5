import ArgumentParser
import LoadTesting

/// The command-line options of all scenarios.
struct LoadOptions: ParsableArguments {
    @Option(
        name: .long,
        help: "The server: ws://HOST:PORT or wss://HOST:PORT. Repeated: the nodes of one hub, among which connections are spread in turns.")
    var url = ["ws://127.0.0.1:6001"]
    @Option(name: .long, help: "App id.") var appID = "1"
    @Option(name: .long, help: "App key.") var key = "app-key"
    @Option(name: .long, help: "App secret.") var secret = "app-secret"
    @Option(name: .long, help: "What the server speaks: \(DialectName.list).") var dialect = "pusher"

    @Option(name: [.short, .long], help: "How many connections.") var connections: Int?
    @Option(name: .long, help: "How many channels they are spread over.") var channels: Int?
    @Option(name: .long, help: "The channels' name; private- or presence- in front of it makes them so.") var channel: String?
    @Option(name: [.short, .long], help: "Publishes (or what the scenario does) per second, at a constant rate whatever the server does.")
    var rate: Double?
    @Option(name: .long, help: "Instead of a rate: publishes under way at any time, each sent when one before it is answered.")
    var outstanding: Int?
    @Option(name: .long, help: "Connections that publish; with --outstanding that many.") var publishers: Int?
    @Option(name: [.short, .long], help: "Seconds to measure.") var seconds = 10.0
    @Option(name: .long, help: "Seconds of load before that.") var warmup = 2.0
    @Option(name: .long, help: "Seconds to wait at the end for what has not come.") var drain = 5.0
    @Option(name: [.short, .long], help: "Bytes of an event's data.") var bytes = 128
    @Option(name: .long, help: "New connections per second while the run is set up.") var connectRate = 2000.0
    @Option(name: .long, help: "Threads that receive; one more publishes.") var threads = 1

    @Option(name: .long, help: "The server's process, for its CPU and memory, on this machine. Repeated: all of them together.")
    var serverPid: [Int] = []
    @Option(name: .long, help: "Write the report as JSON into this file.") var json: String?
    @Option(name: .long, help: "Write the report as an HTML page into this file.") var html: String?
    @Flag(name: .long, help: "The server is not on this machine, and you may load it.") var iOwnThisServer = false

    static let secondsMax = 30.0 * 24 * 3600
    static let rateMax = 1_000_000.0

    func validate() throws {
        func within<Number: Comparable>(_ name: String, _ value: Number?, _ range: ClosedRange<Number>) throws {
            guard let value, !range.contains(value) else { return }
            throw ValidationError("--\(name) is \(range.lowerBound) to \(range.upperBound), not \(value)")
        }
        try within("connections", connections, 1...RunOptions.connectionsMax)
        try within("channels", channels, 1...RunOptions.connectionsMax)
        try within("rate", rate, 0.001...Self.rateMax)
        try within("outstanding", outstanding, 1...1000)
        try within("publishers", publishers, 1...1000)
        try within("seconds", seconds, 0.1...Self.secondsMax)
        try within("warmup", warmup, 0...Self.secondsMax)
        try within("drain", drain, 0...3600)
        try within("bytes", bytes, 48...1_000_000)
        try within("connect-rate", connectRate, 1...Self.rateMax)
        try within("threads", threads, 1...RunOptions.threadsMax)
        if rate != nil, outstanding != nil { throw ValidationError("--rate and --outstanding exclude each other") }
        if outstanding != nil, publishers != nil { throw ValidationError("--outstanding says how many publishers there are") }
    }

    /// A scenario's values for options that are not given.
    struct Defaults {
        var connections = 1000
        var channels = 1
        var channel = "load"
        var rate = 20.0
    }

    func options(_ scenario: String, _ defaults: Defaults) -> RunOptions {
        let pace: PublishPace = outstanding.map { .outstanding($0) } ?? .rate(rate ?? defaults.rate)
        // A few connections keep up a rate even if some answers are slow; more connections would only put more requests in flight.
        let lines = outstanding ?? publishers ?? 4
        return RunOptions(
            scenario: scenario, connections: connections ?? defaults.connections, channels: channels ?? defaults.channels,
            channel: channel ?? defaults.channel, seconds: seconds, warmup: warmup, pace: pace, publishers: lines, bytes: bytes,
            connectRate: connectRate, threads: threads, serverPIDs: serverPid, drain: drain)
    }

    /// - Throws: for the address of another machine, unless the operator declares to own that server; for several that are not Pusher's.
    func targets() throws(LoadError) -> Targets {
        let targets = try Targets(url)
        for target in targets.all where !target.isLoopback && !iOwnThisServer {
            throw LoadError(
                "\(target.host) is not this machine. Loading somebody else's server is an attack; if it is yours, say --i-own-this-server",
                isUsage: true)
        }
        guard targets.count == 1 || dialect == "pusher" else {
            throw LoadError("several --url are nodes of one Pusher-compatible hub: leave out --dialect \(dialect)", isUsage: true)
        }
        return targets
    }

    var app: PusherDialect.App { .init(id: appID, key: key, secret: secret) }
}
