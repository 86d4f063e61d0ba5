internal import Glibc
internal import HubCore

/// The system's clocks.
package struct SystemTime: TimeSource {
    /// The clocks have no state.
    package init() {}

    /// Includes time for which the machine was suspended; otherwise a suspension would look like a step of the wall clock.
    package var monotonicNanoseconds: UInt64 {
        let now = Self.now(CLOCK_BOOTTIME)
        return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
    }

    package var wallMilliseconds: Int64 {
        let now = Self.now(CLOCK_REALTIME)
        return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
    }

    private static func now(_ clock: clockid_t) -> timespec {
        var now = timespec()
        unsafe clock_gettime(clock, &now)
        return now
    }
}
