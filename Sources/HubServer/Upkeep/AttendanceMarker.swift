internal import HubCore
internal import HubDelivery
internal import Logging

/// Marks in the store, every few seconds, that somebody is connected; writes nothing otherwise. Coarse, because a start only asks whether
/// people were connected a moment ago.
struct AttendanceMarker: Sendable {
    let store: any AttendanceMarkStore
    let time: any TimeSource
    /// Whether somebody is connected to a channel with a definition.
    let isAttended: Flag
    let logger: Logger

    /// Time between two looks, within which the first connection is marked.
    private static let lookPeriod = Duration.seconds(1)

    /// Runs until the task is cancelled.
    func run() async {
        var last: Int64?
        while true {
            last = await mark(after: last)
            do { try await Tick.wait(Self.lookPeriod) } catch { return }
        }
    }

    /// Makes a mark, unless the last one is young enough or nobody is connected.
    /// - Parameter last: time of the last mark; nil for none.
    /// - Returns: time of the newest mark.
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
