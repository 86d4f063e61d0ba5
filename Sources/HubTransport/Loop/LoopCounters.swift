internal import CLibWebSockets
internal import Glibc
package import HubCore

/// Counters and gauges of one loop, copied for metrics.
package struct LoopCounters: Sendable {
    /// Totals since the start.
    package var counters = Loop.Counters()
    /// WebSocket connections open now.
    package var connections = 0
    /// The number of the next HTTP request, counted by heads.
    package var nextRequest: UInt64 = 0
    /// The number below which all HTTP requests are answered.
    package var answeredUpTo: UInt64 = 0
    /// Connections with unsent frames.
    package var behind = 0
    /// Bytes of memory that wait for slow connections and unread answers.
    package var backlogBytes = 0
    /// Descriptors handed over and not adopted yet.
    package var newcomers = 0
    /// Durations of the loop's turns.
    package var turns = Histogram()
    /// CPU time of the loop's thread, in nanoseconds.
    package var cpuNanoseconds: UInt64 = 0
    /// TLS handshakes; zeros without TLS.
    package var handshakes = Handshakes()

    /// TLS handshakes since the start. A begun handshake that is not completed has failed, or is under way.
    package struct Handshakes: Sendable {
        /// Handshakes that a client began.
        package var begun: UInt64 = 0
        /// Handshakes after which bytes can be exchanged.
        package var completed: UInt64 = 0
        /// Completed handshakes that resumed a session.
        package var resumed: UInt64 = 0
    }
}

extension Loop {
    /// A copy of the loop's numbers. On the loop's thread.
    package var figures: LoopCounters {
        assertOnThread()
        var time = timespec()
        unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return LoopCounters(
            counters: counters, connections: connectionCount, nextRequest: http.nextNumber, answeredUpTo: http.answeredUpTo,
            behind: queues.count,
            backlogBytes: queuedMemory.bytes, newcomers: newcomers.count, turns: turns,
            cpuNanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec),
            handshakes: library?.handshakes ?? LoopCounters.Handshakes())
    }
}
