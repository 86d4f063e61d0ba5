/// What a run is to be: the same for all scenarios, each uses what it needs.
package struct RunOptions: Sendable {
    package var scenario: String
    package var connections: Int
    package var channels: Int
    /// The channels' name; its prefix says whether they are public, private or presence channels.
    package var channel: String
    /// Measured, and before that.
    package var seconds: Double
    package var warmup: Double
    package var pace: PublishPace
    /// Connections that publish.
    package var publishers: Int
    package var bytes: Int
    /// New connections a second while the run is set up.
    package var connectRate: Double
    /// Threads that receive; one more publishes.
    package var threads: Int
    package var serverPID: Int?
    /// Connections that come and go beside those; their descriptors are needed, too.
    package var beside = 0
    /// How long after the last publish something may still come.
    package var drain: Double

    package init(
        scenario: String, connections: Int, channels: Int, channel: String, seconds: Double, warmup: Double, pace: PublishPace,
        publishers: Int, bytes: Int, connectRate: Double, threads: Int, serverPID: Int?, drain: Double
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
        self.serverPID = serverPID
        self.drain = drain
    }

    /// Beyond them is a mistake rather than a load.
    package static let connectionsMax = 1_000_000
    package static let threadsMax = 64

    /// The names of the channels, one without a number when it is alone.
    package var channelNames: [String] { channels == 1 ? [channel] : (1...max(1, channels)).map { "\(channel)-\($0)" } }

    /// As they stand in the report.
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

/// A number with at most two digits behind the point, and none where they would be 0.
package func decimal(_ value: Double) -> String {
    guard value.isFinite, value.magnitude < 1e15 else { return "\(value)" }
    let hundredths = Int64((value * 100).rounded())
    let sign = hundredths < 0 ? "-" : ""
    let whole = hundredths.magnitude / 100
    let rest = hundredths.magnitude % 100
    if rest == 0 { return "\(sign)\(whole)" }
    return rest % 10 == 0 ? "\(sign)\(whole).\(rest / 10)" : "\(sign)\(whole).\(rest < 10 ? "0" : "")\(rest)"
}
