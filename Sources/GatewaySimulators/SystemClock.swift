import Glibc
import HubCore

/// The machine's clocks. The simulators create it themselves, as they have no composition root above them.
struct SystemClock: TimeSource {
    var monotonicNanoseconds: UInt64 {
        let now = Self.read(CLOCK_MONOTONIC)
        return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
    }

    var wallMilliseconds: Int64 {
        let now = Self.read(CLOCK_REALTIME)
        return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
    }

    private static func read(_ clock: clockid_t) -> timespec {
        var now = timespec()
        unsafe clock_gettime(clock, &now)
        return now
    }
}

extension TimeSource {
    var monotonicMilliseconds: UInt64 { monotonicNanoseconds / 1_000_000 }
}
