internal import HubCore
internal import HubDelivery
internal import HubPush
internal import Logging

/// Outcomes: what the gateways answered, written down.
extension Outbox {
    /// Works off what the gateways answer, as long as they have something to answer: what comes in while the store writes is written
    /// down together.
    func settleAnswers() async {
        while handed > 0 {
            // The task is nobody's to cancel.
            if handed > Self.gatheringMin { try? await Task.sleep(for: Self.gathering) }
            guard let batch = await answers.next() else { break }
            handed -= batch.count
            // Their lanes have room again: the next go out while these are written down.
            pump()
            var settled: [PushRecord] = []
            settled.reserveCapacity(batch.count)
            for answer in batch { settled.append(settle(answer)) }
            let clockShift = clockShift
            await noteTokens(batch)
            await complete(await withoutFollowed(settled, batch), settledAt: clockShift)
        }
        isSettling = false
    }

    struct Answer: Sendable {
        let delivery: PushRecord
        let target: PushTarget
        let isNoteDue: Bool
        /// `Outbox.clockShift` when it was handed over.
        let clockShift: Int64
        /// For how many milliseconds it is kept back; nil: it left.
        var keptBack: Int64?
        let outcome: PushOutcome
    }

    /// Writes down what the answers say about tokens: side by side, so that the store does it in one transaction. An app that its
    /// users have removed gives thousands of dead ones at once.
    private func noteTokens(_ answers: [Answer]) async {
        await withTaskGroup { group in
            for answer in answers {
                let target = answer.target
                switch answer.outcome {
                case .dead(_, let since, isCertain: true):
                    group.addTask { await self.remove(target.token, app: answer.delivery.app, of: target.provider, deadSince: since) }
                case .accepted(_, let other) where answer.isNoteDue || other != nil:
                    group.addTask { await self.noteAccepted(target, app: answer.delivery.app, other ?? target.environment) }
                default: break
                }
            }
        }
    }

    private func noteAccepted(_ target: PushTarget, app: String, _ environment: APNsEnvironment) async {
        do {
            try await directory.noteAccepted(
                token: target.token, app: app, provider: target.provider, environment: environment, at: time.wallMilliseconds)
        } catch {
            // The next accepted push says it again.
            logger.error("that a token was accepted could not be written down", metadata: ["error": "\(error)"])
        }
    }

    /// Forgets a token that its gateway calls dead. What still waits for its device ends without an attempt when it comes up,
    /// because the token is looked up then.
    /// - Parameter deadSince: milliseconds since 1970; nil: the gateway gave no time.
    func remove(_ token: String, app: String, of provider: PushProvider, deadSince: Int64?) async {
        do {
            _ = try await directory.removeToken(token, app: app, provider: provider, deadSince: deadSince)
        } catch {
            logger.error("a dead token could not be removed", metadata: ["error": "\(error)"])
        }
    }

    /// What the delivery has become.
    private func settle(_ answer: Answer) -> PushRecord {
        let delivery = answer.delivery.shifted(by: clockShift - answer.clockShift)
        // Libcurl may have begun to send it once, and been answered nothing: then it counts as what its outcome says.
        if let wait = answer.keptBack, case .retry = answer.outcome { return keptBack(delivery, milliseconds: wait) }
        counts.answered(delivery, answer, now: now)
        switch answer.outcome {
        case .accepted(let providerID, _):
            var delivery = delivery
            delivery.providerID = providerID
            return end(delivery, .accepted, outcome: "accepted")
        case .dead(let reason, _, _), .rejected(let reason): return end(delivery, .failed, outcome: reason)
        case .skippedUnconfigured: return end(delivery, .skippedUnconfigured, outcome: "skipped_unconfigured")
        case .retry(_, let reason): return afterRetry(delivery, answer.outcome, reason: reason)
        }
    }

    /// The delivery as it goes on after an attempt that may be repeated.
    func afterRetry(_ delivery: PushRecord, _ outcome: PushOutcome, reason: String) -> PushRecord {
        let now = now
        let next = RetryPolicy.next(
            attempt: delivery.attempts, outcome: outcome, now: now, firstAttemptAt: delivery.firstAttemptAt ?? now,
            expiresAt: delivery.message?.expiresAt ?? now, random: Double.random(in: 0..<1))
        switch next {
        case .giveUp(let why): return end(delivery, .failed, outcome: "\(reason): \(why)")
        case .at(let due):
            var delivery = end(delivery, .retry, outcome: reason)
            delivery.dueAt = due
            return delivery
        }
    }

    func end(_ delivery: PushRecord, _ state: PushState, outcome: String) -> PushRecord {
        var delivery = delivery
        delivery.state = state
        note(outcome, of: &delivery)
        return delivery
    }

    /// Writes down what deliveries have become, and has those go on that are to be tried again.
    /// - Parameter settledAt: `clockShift` when that was decided.
    func complete(_ deliveries: [PushRecord], settledAt: Int64) async {
        if deliveries.isEmpty { return }
        inFlight -= deliveries.count
        let withdrawn = await write(deliveries) ?? []
        for delivery in withdrawn { log(delivery) }
        for var delivery in deliveries {
            if delivery.state != .retry {
                log(delivery)
            } else if !isClosed, !withdrawn.contains(where: { $0.nid == delivery.nid && $0.device == delivery.device }) {
                // Written down; the next attempt is another one.
                delivery.attempt = nil
                queue.insert(delivery.shifted(by: clockShift - settledAt))
            }
        }
        pump()
    }

    func log(_ ended: PushRecord) {
        counts.ended(ended)
        logger.debug(
            "push ended",
            metadata: [
                "push.nid": "\(ended.nid)", "push.state": "\(ended.state.rawValue)", "push.outcome": "\(ended.outcome ?? "")",
            ])
    }

    private func note(_ outcome: String, of delivery: inout PushRecord) {
        delivery.outcome = outcome
        // Nil where no gateway was asked.
        delivery.attempt?.endedAt = now
        delivery.attempt?.answer = outcome
    }

    /// An outcome that cannot be written leaves the store as it was: the delivery is repeated after the next start.
    /// - Returns: what has ended instead of being tried again; nil: nothing could be written.
    func write(_ deliveries: [PushRecord]) async -> [PushRecord]? {
        if deliveries.isEmpty { return [] }
        do {
            return try await store.update(deliveries)
        } catch {
            logger.error(
                "the outcome of pushes could not be stored",
                metadata: ["push.nid": "\(deliveries.first?.nid ?? "")", "count": "\(deliveries.count)", "error": "\(error)"])
            return nil
        }
    }
}
