/// Parameters of a run, common to all scenarios. A scenario may ignore some.
package struct RunOptions: Sendable {
    package var scenario: String
    package var connections: Int
    package var channels: Int
    /// The channels' base name; its prefix makes them public, private or presence channels.
    package var channel: String
    /// Measured time in seconds.
    package var seconds: Double
    /// Seconds of load before measuring.
    package var warmup: Double
    package var pace: PublishPace
    /// Connections that publish.
    package var publishers: Int
    /// Length of an event's data.
    package var bytes: Int
    /// New connections per second during the ramp.
    package var connectRate: Double
    /// Receiving threads; one more thread publishes.
    package var threads: Int
    /// Roots of the process families of the server, or of each node, for CPU and memory together; empty: not measured.
    package var serverPIDs: [Int]
    /// Further connections that come and go, which need descriptors too.
    package var beside = 0
    /// Seconds after the last publish in which events may still arrive.
    package var drain: Double

    package init(
        scenario: String, connections: Int, channels: Int, channel: String, seconds: Double, warmup: Double, pace: PublishPace,
        publishers: Int, bytes: Int, connectRate: Double, threads: Int, serverPIDs: [Int], drain: Double
    ) {
        self.scenario = scenario
        self.connections = connections
        self.channels = channels
        self.channel = channel
        self.seconds = seconds
        self.warmup = warmup
        self.pace = pace
        self.publishers = publishers
        self.bytes = bytes
        self.connectRate = connectRate
        self.threads = threads
        self.serverPIDs = serverPIDs
        self.drain = drain
    }

    /// Upper bound of `connections`: more is a mistake rather than a load.
    package static let connectionsMax = 1_000_000
    package static let threadsMax = 64

    /// The channels' names, without a number if there is only one.
    package var channelNames: [String] { channels == 1 ? [channel] : (1...max(1, channels)).map { "\(channel)-\($0)" } }

    /// The options for the report.
    var settings: [LoadReport.Setting] {
        let paced: LoadReport.Setting =
            switch pace {
            case .rate(let rate): .init("rate", "\(decimal(rate)) publishes/s")
            case .outstanding(let count): .init("outstanding", "\(count)")
            }
        return [
            .init("connections", "\(connections)"), .init("channels", "\(channels)"), .init("channel", channel), paced,
            .init("publishers", "\(publishers)"), .init("bytes", "\(bytes)"), .init("warmup", "\(decimal(warmup)) s"),
            .init("receiving threads", "\(threads)"),
        ]
    }
}

/// A number with at most two decimals, and none if they are 0.
package func decimal(_ value: Double) -> String {
    guard value.isFinite, value.magnitude < 1e15 else { return "\(value)" }
    let hundredths = Int64((value * 100).rounded())
    let sign = hundredths < 0 ? "-" : ""
    let whole = hundredths.magnitude / 100
    let rest = hundredths.magnitude % 100
    if rest == 0 { return "\(sign)\(whole)" }
    return rest % 10 == 0 ? "\(sign)\(whole).\(rest / 10)" : "\(sign)\(whole).\(rest < 10 ? "0" : "")\(rest)"
}
