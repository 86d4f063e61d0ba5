internal import Synchronization

/// A value behind a lock, shared by reference. Any thread.
package final class Guarded<Value>: Sendable {
    private let value: Mutex<Value>

    package init(_ value: sending Value) { self.value = Mutex(value) }

    /// Runs `body` under the lock. It must be short, and must not come back for the same lock.
    package func withLock<Result, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try value.withLock(body)
    }

    /// Runs `body` under the lock with the time in nanoseconds of the monotonic clock. The time is read under the lock, so it never
    /// decreases from one caller to the next.
    package func withLock<Result, Failure: Error>(
        at time: any TimeSource, _ body: (inout sending Value, _ now: UInt64) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try value.withLock { value throws(Failure) in try body(&value, time.monotonicNanoseconds) }
    }
}
