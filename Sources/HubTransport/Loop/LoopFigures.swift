internal import CLibWebSockets
internal import Glibc
package import HubCore

/// What one loop has done and holds: a copy of its plain numbers, for metrics.
package struct LoopFigures: Sendable {
    package var counters = Loop.Counters()
    /// WebSocket connections open now.
    package var connections = 0
    /// HTTP requests are numbered as their heads come: the number of the next one, and the number below which all have their answer.
    package var nextRequest: UInt64 = 0
    package var answeredUpTo: UInt64 = 0
    /// Connections that do not keep up, and the memory of everything that waits for them.
    package var behind = 0
    package var backlogBytes = 0
    /// Descriptors that were handed over and wait for their turn.
    package var newcomers = 0
    package var turns = Histogram()
    /// What the loop's thread has used of a core, in nanoseconds.
    package var cpuNanoseconds: UInt64 = 0
    package var handshakes = Handshakes()

    /// TLS handshakes since the start. What has begun and is not completed failed, or is under way.
    package struct Handshakes: Sendable {
        package var begun: UInt64 = 0
        package var completed: UInt64 = 0
        /// Of these, those with a session of before.
        package var resumed: UInt64 = 0
    }
}

extension Loop {
    package var figures: LoopFigures {
        assertOnThread()
        var time = timespec()
        unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return LoopFigures(
            counters: counters, connections: connectionCount, nextRequest: http.nextNumber, answeredUpTo: http.answeredUpTo, behind: queues.count,
            backlogBytes: queuedMemory.bytes, newcomers: newcomers.count, turns: turns,
            cpuNanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec), handshakes: native.handshakes)
    }
}
