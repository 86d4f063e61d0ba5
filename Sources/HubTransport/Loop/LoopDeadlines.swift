internal import HubCore

/// Time limits of HTTP connections: for a head, a body, the reading of an answer, and between two requests. Looked at once a tick.
extension Loop {
    /// The tick at which a head or a body has to be complete that begins now.
    var bodyDeadline: UInt32 { deadline(seconds: options.requestTimeoutSeconds) }

    /// The tick at which the next request has to have begun.
    var idleDeadline: UInt32 { deadline(seconds: LoopOptions.keepAliveSeconds) }

    private func deadline(seconds: Int) -> UInt32 {
        // One more, because the tick that is under way may be nearly over: nobody gets less than was promised.
        tick &+ UInt32(seconds) * UInt32(1000 / LoopOptions.tickMilliseconds) &+ 1
    }

    func isPast(_ deadline: UInt32) -> Bool { Int32(bitPattern: tick &- deadline) >= 0 }

    func enforceDeadlines() {
        judgeWaitingHeads()
        cutOffIdleReaders()
        refuseLateBodies()
        for index in http.indices {
            guard let connection = http[index], connection.exchange == nil, isPast(connection.deadline) else { continue }
            unsafe end(connection.wsi)
        }
        endLingerers()
    }

    /// Answers 408 to whoever is late with a body, and ends the connection behind it.
    private func refuseLateBodies() {
        for index in http.indices {
            guard let connection = http[index], let exchange = connection.exchange, !exchange.isDispatched else { continue }
            guard isPast(exchange.deadline) else { continue }
            let sentence = "the request's body did not arrive within \(options.requestTimeoutSeconds) s: send it without pauses"
            if !refuse(index, connection, .error(408, sentence)) { unsafe end(connection.wsi) }
        }
    }
}
