internal import HubCore
internal import HubDelivery
internal import Logging

/// Following: a push that waits is for the person, not for the device that the person had when it was decided.
extension Outbox {
    /// Looks again at pushes whose device has gone or has another token, and at those that have waited so long that others may have come.
    /// - Parameters:
    ///   - places: of those to look at.
    ///   - found: where they would go.
    /// - Returns: the places of those that do not go out now. Pushes to devices that have come are in the queue.
    func follow(_ places: [Int], of deliveries: [PushRecord], _ found: [TargetReader.Found]) async -> Set<Int> {
        do {
            let now = now
            let reachable = try await targets.reachable(for: places.map { deliveries[$0] }, now: now)
            let redirections = zip(places, reachable).map { place, reachable in
                switch found[place] {
                case .target(let target, _):
                    Redirection(delivery: deliveries[place], token: TokenMark(target.token, of: target.provider), reachable: reachable)
                case .none(let reason):
                    Redirection(delivery: end(deliveries[place], .undeliverable, outcome: reason), token: nil, reachable: reachable)
                case .unknown: Redirection(delivery: deliveries[place], token: nil, reachable: [])
                }
            }
            // Mostly nothing has come, and nothing has to be written.
            let asked = redirections.indices.filter { redirections[$0].isWorthAsking }
            let outcomes = try await store.redirect(asked.map { redirections[$0] }, now: now)
            var gone: Set<Int> = []
            for (index, outcome) in zip(asked, outcomes) where !goesOn(outcome, deliveries[places[index]]) { gone.insert(places[index]) }
            return gone
        } catch {
            logger.error("devices of waiting pushes could not be looked at again; trying again", metadata: ["error": "\(error)"])
            for place in places { wait(with: deliveries[place]) }
            return Set(places)
        }
    }

    private func goesOn(_ outcome: RedirectionOutcome, _ delivery: PushRecord) -> Bool {
        switch outcome {
        case .goesOn(let successors):
            take(successors)
            return true
        case .ended(let ended, let successors):
            log(ended)
            take(successors)
        case .waits: wait(with: delivery)
        case .gone: break
        }
        return false
    }

    private func take(_ successors: [PushRecord]) {
        if isClosed { return }
        for successor in successors { queue.insert(successor) }
    }

    private func wait(with delivery: PushRecord) {
        if isClosed { return }
        var delivery = delivery
        delivery.dueAt = now + 1000
        queue.insert(delivery)
    }

    /// Has people told on devices that have come since, whose token turned out to be dead.
    /// - Parameter settled: what the answers have come to, in their order.
    /// - Returns: the others, which are to be written down still.
    func withoutFollowed(_ settled: [PushRecord], _ answers: [Answer]) async -> [PushRecord] {
        let dead = answers.indices.filter { index in
            if case .dead = answers[index].outcome {
                settled[index].address == nil && settled[index].purpose == .notification
            } else {
                false
            }
        }
        if dead.isEmpty { return settled }
        do {
            let now = now
            let reachable = try await targets.reachable(for: dead.map { settled[$0] }, now: now)
            let places = dead.indices.filter { reachable[$0].contains { $0.isNew } }
            if places.isEmpty { return settled }
            let outcomes = try await store.redirect(
                places.map { Redirection(delivery: settled[dead[$0]], token: nil, reachable: reachable[$0]) }, now: now)
            var written: Set<Int> = []
            for (place, outcome) in zip(places, outcomes) {
                guard case .ended(let ended, let successors) = outcome else { continue }
                written.insert(dead[place])
                inFlight -= 1
                log(ended)
                take(successors)
            }
            pump()
            return settled.indices.filter { !written.contains($0) }.map { settled[$0] }
        } catch {
            logger.error("whose token is dead could not be looked for on other devices", metadata: ["error": "\(error)"])
            return settled
        }
    }
}

extension Redirection {
    /// Whether there is anything to decide: what goes to its own device goes on where nobody has come and no other has its token.
    fileprivate var isWorthAsking: Bool {
        token == nil || reachable.contains { $0.device != delivery.device && ($0.isNew || $0.token == token) } || isOwnTokenNew
    }

    private var isOwnTokenNew: Bool { reachable.contains { $0.device == delivery.device && $0.isNew } }
}
