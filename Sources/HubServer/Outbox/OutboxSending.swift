internal import HubCore
internal import HubDelivery
internal import Logging

/// Sending: the lease, then the gateway.
extension Outbox {
    /// - Parameter ready: what may go out, with where it goes.
    /// - Returns: false when the store cannot be written; they are tried again in a second.
    func lease(_ ready: [Addressed]) async -> Bool {
        if ready.isEmpty { return true }
        let now = now
        let batch = ready.map { addressed in
            var delivery = addressed.delivery
            delivery.state = .leased
            delivery.attempts += 1
            delivery.dueAt = now + Self.leaseMilliseconds
            return delivery
        }
        inFlight += batch.count
        do {
            let leased = try await store.lease(batch)
            inFlight -= batch.count - leased.count
            await send(leased, ready)
            return true
        } catch {
            logger.error("deliveries could not be leased; trying again", metadata: ["error": "\(error)"])
            inFlight -= batch.count
            if isClosed { return false }
            for var delivery in ready.map(\.delivery) {
                delivery.dueAt = now + 1000
                queue.insert(delivery)
            }
            return false
        }
    }

    /// - Parameters:
    ///   - leased: those that had not ended meanwhile.
    ///   - ready: all of them, in the same order.
    private func send(_ leased: [PushRecord], _ ready: [Addressed]) async {
        let now = now
        var ended: [PushRecord] = []
        var rest = ready[...]
        for delivery in leased {
            rest = rest.drop { $0.delivery.nid != delivery.nid || $0.delivery.device != delivery.device }
            guard let addressed = rest.popFirst() else { break }
            guard let message = delivery.message else {
                ended.append(end(delivery, .failed, outcome: "no message"))
                continue
            }
            guard message.expiresAt > now else {
                ended.append(end(delivery, .expired, outcome: "expired"))
                continue
            }
            switch addressed.found {
            case .target(let target, let lastAcceptedAt):
                hand(
                    message, of: delivery, to: target, isNoteDue: lastAcceptedAt.map { now - $0 >= Self.acceptanceNotedEvery } ?? false,
                    now: now)
            case .none(let reason): ended.append(end(delivery, .undeliverable, outcome: reason))
            case .unknown: ended.append(afterRetry(delivery, .retry(after: nil, reason: "store"), reason: "store"))
            }
        }
        await complete(ended, settledAt: clockShift)
    }

    /// - Parameter isNoteDue: whether it is time to write down that the gateway accepted this token.
    private func hand(_ message: PushMessage, of delivery: PushRecord, to target: PushTarget, isNoteDue: Bool, now: Int64) {
        var sent = delivery
        if delivery.attempts == 1 || delivery.firstAttemptAt == nil { sent.firstAttemptAt = now }
        sent.attempt = DeliveryAttempt(
            number: delivery.attempts, startedAt: now, endedAt: 0, answer: "", token: TokenMark(target.token, of: target.provider))
        handed += 1
        let (answers, clockShift, departure) = (answers, clockShift, Departure())
        let departs: @Sendable () -> Bool = { [self, sent] in
            guard let wait = wait(of: sent) else { return true }
            departure.keep(wait)
            return false
        }
        gateway.send(message, to: target, departs: departs) { [sent] outcome in
            answers.post(
                Answer(
                    delivery: sent, target: target, isNoteDue: isNoteDue, clockShift: clockShift, keptBack: departure.keptMilliseconds,
                    outcome: outcome))
        }
        if isSettling { return }
        isSettling = true
        Task { await settleAnswers() }
    }
}
