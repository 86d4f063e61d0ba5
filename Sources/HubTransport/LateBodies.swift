internal import HubCore

/// Bodies that do not arrive in time. libwebsockets' own time-out begins anew with every piece of a body, so a peer that sends a
/// byte now and then could hold a connection, and what has arrived of its body, for ever.
extension Loop {
    /// The tick at which a body has to be complete whose head is complete now.
    var bodyDeadline: UInt32 {
        // One more, because the tick that is under way may be nearly over: nobody gets less than was promised.
        tick &+ UInt32(options.requestTimeoutSeconds) * UInt32(1000 / LoopOptions.tickMilliseconds) &+ 1
    }

    /// Answers 408 to whoever is late, and ends the connection behind it. Once a tick.
    func refuseLateBodies() {
        judgeWaitingHeads()
        cutOffIdleReaders()
        for late in exchanges.late(at: tick, loop: index) {
            let sentence = "the request's body did not arrive within \(options.requestTimeoutSeconds) s: send it without pauses"
            exchanges[late.exchange]?.isDispatched = true
            exchanges[late.exchange]?.mustEnd()
            exchanges[late.exchange]?.charge = nil
            exchanges[late.exchange]?.request.body = []
            respond(late, .error(408, sentence))
        }
        for index in exchanges.lingeredEnough(at: tick) {
            exchanges[index]?.lingersUntil = nil
            if let wsi = unsafe exchanges.connection(at: index) { unsafe end(wsi) }
        }
    }
}

extension ExchangeTable {
    /// Exchanges whose peers were told some time ago that their requests are refused.
    func lingeredEnough(at tick: UInt32) -> [Int] {
        indices.filter { index in self[index]?.lingersUntil.map { Int32(bitPattern: tick &- $0) >= 0 } ?? false }
    }

    /// The exchanges whose body ought to be complete by now.
    func late(at tick: UInt32, loop: Int) -> [HTTPReply] {
        var late: [HTTPReply] = []
        for index in indices {
            guard let exchange = self[index], !exchange.isDispatched, let deadline = exchange.deadline,
                Int32(bitPattern: tick &- deadline) >= 0
            else { continue }
            late.append(HTTPReply(loop: loop, exchange: index, serial: exchange.serial))
        }
        return late
    }
}
