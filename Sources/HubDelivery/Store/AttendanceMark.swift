/// The last time at which somebody was connected, by which a start knows whether anybody is on the way back.
///
/// A hub without earlier clients has nobody to wait for, so a first start delays no push. After an absence of more than
/// `awayMaxMilliseconds`, clients are lost to their own back-off.
package enum AttendanceMark {
    /// Milliseconds between two marks.
    package static let periodMilliseconds: Int64 = 10_000
    /// Milliseconds after the last mark during which a start counts everybody as on the way back: five minutes.
    package static let awayMaxMilliseconds: Int64 = 5 * 60_000

    /// Whether absent participants count as on the way back.
    /// - Parameters:
    ///   - last: the last mark, in milliseconds since 1970; nil if nobody was ever connected.
    ///   - now: time of the start, in milliseconds since 1970. A wall clock that was set back makes nobody wait longer.
    package static func isRecent(_ last: Int64?, now: Int64) -> Bool {
        last.map { now - $0 <= awayMaxMilliseconds } ?? false
    }
}

/// Store of the mark. Callable from any thread.
package protocol AttendanceMarkStore: Sendable {
    /// Sets the mark.
    /// - Parameter time: milliseconds since 1970.
    func markAttendance(at time: Int64) async throws
    /// The last mark, in milliseconds since 1970; nil if nobody was ever connected.
    func lastAttendance() async throws -> Int64?
}
