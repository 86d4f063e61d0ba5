internal import HubCore
internal import HubDelivery
internal import Logging

/// Marks in the store, every few seconds, that somebody is connected. Coarse, because a start asks it for no more than whether people
/// were there a moment ago; and nothing is written while nobody is.
struct AttendanceMarker: Sendable {
    let store: any AttendanceMarkStore
    let time: any TimeSource
    /// Whether somebody is connected to a channel that has a definition.
    let isAttended: Flag
    let logger: Logger

    /// How often it looks: who comes is marked within this time.
    private static let lookPeriod = Duration.seconds(1)

    /// Works until its task is cancelled.
    func run() async {
        var last: Int64?
        while true {
            last = await mark(after: last)
            do { try await Task.sleep(for: Self.lookPeriod) } catch { return }
        }
    }

    /// Marks the present, unless the last mark is young enough or nobody is there.
    /// - Parameter last: nil: none was made.
    /// - Returns: the time of the newest mark.
    func mark(after last: Int64?) async -> Int64? {
        let now = time.wallMilliseconds
        if let last, abs(now - last) < AttendanceMark.periodMilliseconds { return last }
        guard isAttended.isSet else { return last }
        do {
            try await store.markAttendance(at: now)
        } catch {
            logger.error("who is connected could not be marked; a start would not wait for them", metadata: ["error": "\(error)"])
        }
        return now
    }
}
