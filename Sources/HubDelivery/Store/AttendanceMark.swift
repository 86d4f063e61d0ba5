/// When somebody was last connected: tells a start whether there is anybody who is on the way back.
///
/// A hub that had nobody has nobody to wait for, so a first start delays no push; and one that was away for longer than
/// `awayMaxMilliseconds` has lost its clients to their own back-off.
package enum AttendanceMark {
    /// Between two marks, in milliseconds.
    package static let periodMilliseconds: Int64 = 10_000
    /// How long after the last mark a start still counts everybody as on the way back, in milliseconds: five minutes.
    package static let awayMaxMilliseconds: Int64 = 5 * 60_000

    /// Whether those who are not there yet count as on the way back.
    /// - Parameters:
    ///   - last: the last mark; nil: there was never anybody.
    ///   - now: at the start. Both in milliseconds since 1970; a wall clock that was set back makes nobody wait longer.
    package static func isRecent(_ last: Int64?, now: Int64) -> Bool {
        last.map { now - $0 <= awayMaxMilliseconds } ?? false
    }
}

/// Keeps the mark. Callable from any thread.
package protocol AttendanceMarkStore: Sendable {
    /// - Parameter time: milliseconds since 1970.
    func markAttendance(at time: Int64) async throws
    /// Nil: nobody was ever connected.
    func lastAttendance() async throws -> Int64?
}
