import HubCore
import Synchronization

/// A clock that moves only when it is told to; both of its clocks move together.
package final class ManualClock: TimeSource {
    /// 2026-01-09T01:00:00.000Z
    package static let start: Int64 = 1_767_920_400_000

    private let initialWall: Int64
    private let elapsed = Mutex<Int64>(0)

    package init(wall: Int64 = ManualClock.start) {
        initialWall = wall
    }

    package var wallMilliseconds: Int64 { elapsed.withLock { initialWall + $0 } }
    package var monotonicNanoseconds: UInt64 { elapsed.withLock { 1_000_000_000 + UInt64($0) * 1_000_000 } }

    package func advance(milliseconds: Int64) {
        elapsed.withLock { $0 += milliseconds }
    }

    package func advance(seconds: Int64) {
        advance(milliseconds: seconds * 1000)
    }
}
