import HubCore
import Synchronization

/// A clock that a test sets.
package final class TestClock: TimeSource {
    private let milliseconds = Mutex<Int64>(1_700_000_000_000)

    package init() {}

    package var monotonicNanoseconds: UInt64 { UInt64(wallMilliseconds) * 1_000_000 }
    package var wallMilliseconds: Int64 { milliseconds.withLock { $0 } }

    package func advance(milliseconds delta: Int64) {
        milliseconds.withLock { $0 += delta }
    }
}
