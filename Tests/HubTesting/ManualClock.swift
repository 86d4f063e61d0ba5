import HubCore
import Synchronization

/// A clock that tests move. The wall clock and the monotonic clock move together, except in `setWall`.
package final class ManualClock: TimeSource {
    /// 2026-01-09T01:00:00.000Z
    package static let start: Int64 = 1_767_920_400_000

    private let state: Mutex<(wall: Int64, elapsed: Int64)>

    package init(wall: Int64 = ManualClock.start) {
        state = Mutex((wall, 0))
    }

    package var wallMilliseconds: Int64 { state.withLock { $0.wall + $0.elapsed } }
    package var monotonicNanoseconds: UInt64 { state.withLock { 1_000_000_000 + UInt64($0.elapsed) * 1_000_000 } }

    /// Moves both clocks forward.
    package func advance(milliseconds: Int64) {
        state.withLock { $0.elapsed += milliseconds }
    }

    /// Moves the wall clock alone, forwards or (negative) backwards.
    package func setWall(by milliseconds: Int64) {
        state.withLock { $0.wall += milliseconds }
    }

    package func advance(seconds: Int64) {
        advance(milliseconds: seconds * 1000)
    }
}
