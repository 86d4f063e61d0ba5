internal import HubCore
internal import HubDelivery
internal import Logging

/// Ruling: quiet hours, alert limits and the silent budget, by what events and devices say.
extension Outbox {
    /// What is due, with all that is needed to rule on it.
    func takeDue(limit: Int) async -> [PushRecord] {
        let now = now
        let due = queue.takeDue(now: now, limit: limit)
        if !rules.isAnyUnknown(due, now: now) { return due }
        let unknown = Set(due.filter { rules.needsEvent(of: $0) }.map(\.event))
        // Back while events and devices are read, so that whatever is cancelled meanwhile is found.
        for delivery in due { queue.insert(delivery) }
        for event in unknown {
            do {
                rules.learn(event: event, channel: try await store.event(id: event)?.channel, now: now)
            } catch {
                logger.error(
                    "an event could not be read; its pushes go by the standard limits",
                    metadata: ["event": "\(event)", "error": "\(error)"])
                rules.learn(event: event, channel: nil, now: now)
            }
        }
        for delivery in due where rules.needsZone(of: delivery, now: now) { await learnZone(of: delivery) }
        // What came in meanwhile may be unknown again: it is for the next round.
        let again = queue.takeDue(now: now, limit: limit)
        for delivery in again where isUnknown(delivery) { queue.insert(delivery) }
        return again.filter { !isUnknown($0) }
    }

    private func isUnknown(_ delivery: PushRecord) -> Bool {
        rules.needsEvent(of: delivery) || rules.needsZone(of: delivery, now: now)
    }

    private func learnZone(of delivery: PushRecord) async {
        var timezone: String?
        do {
            timezone = try await directory.device(app: delivery.app, user: delivery.user, id: delivery.device)?.timezone
        } catch {
            logger.error(
                "a device could not be read; its quiet hours go by the definition's time zone",
                metadata: ["push.nid": "\(delivery.nid)", "error": "\(error)"])
        }
        if !rules.learn(device: delivery, timezone: timezone, now: now), let timezone {
            logger.warning(
                "a device names a time zone that this machine does not know; its quiet hours go by the definition's",
                metadata: ["push.nid": "\(delivery.nid)", "timezone": "\(timezone.quotable(64))"])
        }
    }

    /// Takes from the queue what is not to be sent any more.
    func displaced(_ names: [PushRules.Displaced]) -> [PushRecord] {
        var ended: [PushRecord] = []
        for name in names {
            for var delivery in queue.remove(nid: name.nid, device: name.device) {
                guard rules.covers(name, delivery) else {
                    queue.insert(delivery)
                    continue
                }
                delivery.state = .cancelled
                delivery.outcome = PushBudget.Reason.displaced.rawValue
                ended.append(delivery)
            }
        }
        return ended
    }
}
