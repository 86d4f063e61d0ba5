/// This machine's wall clock beside that of a server that all nodes use.
package enum ClockDifference {
    /// Milliseconds that are no reason for a warning.
    package static let allowedMilliseconds: Int64 = 60_000

    /// How far this machine's clock is ahead in milliseconds, when the server told its time between the two readings of it.
    package static func ahead(before: Int64, after: Int64, server: Int64) -> Int64 { before + (after - before) / 2 - server }

    /// Warning for the operator; nil: the clocks agree well enough.
    /// - Parameter server: whose clock the other one is, as messages name it.
    package static func warning(ahead milliseconds: Int64, of server: String) -> String? {
        guard milliseconds.magnitude >= allowedMilliseconds else { return nil }
        let seconds = milliseconds.magnitude / 1000
        let direction = milliseconds > 0 ? "ahead of" : "behind"
        return "this machine's clock is \(seconds / 60) min \(seconds % 60) s \(direction) that of \(server), "
            + "and nodes go by their own clocks for signatures, tokens and due times; set all clocks by NTP"
    }
}
