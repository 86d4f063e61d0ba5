internal import HubCore

/// Time limits of HTTP connections: for a head, a body, the reading of an answer, and between two requests. Checked
/// once per tick.
extension Loop {
    /// The tick by which a head or body that begins now must be complete.
    var bodyDeadline: UInt32 { deadline(seconds: options.requestTimeoutSeconds) }

    /// The tick by which the next request must begin.
    var idleDeadline: UInt32 { deadline(seconds: LoopOptions.keepAliveSeconds) }

    private func deadline(seconds: Int) -> UInt32 {
        // One more tick, because the current one may be nearly over.
        tick &+ UInt32(seconds) * UInt32(1000 / LoopOptions.tickMilliseconds) &+ 1
    }

    func isPast(_ deadline: UInt32) -> Bool { Int32(bitPattern: tick &- deadline) >= 0 }

    func enforceDeadlines() {
        judgeWaitingHeads()
        cutOffIdleReaders()
        refuseLateBodies()
        for index in http.indices {
            guard let connection = http[index], connection.exchange == nil, isPast(connection.deadline) else { continue }
            unsafe end(connection.socket)
        }
        endLingerers()
    }

    /// Answers 408 to late bodies, and then ends the connection.
    private func refuseLateBodies() {
        for index in http.indices {
            guard let connection = http[index], let exchange = connection.exchange, !exchange.isDispatched else { continue }
            guard isPast(exchange.deadline) else { continue }
            let sentence = "the request's body did not arrive within \(options.requestTimeoutSeconds) s: send it without pauses"
            if !refuse(index, connection, .error(408, sentence)) { unsafe end(connection.socket) }
        }
    }
}
