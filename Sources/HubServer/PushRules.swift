internal import HubDelivery

/// Rules on deliveries that are due and have not been attempted: `PushBudget` by the settings of their channels' definitions.
///
/// A value without I/O, owned by the outbox. Which channel an event belongs to is read by the owner and learned here.
struct PushRules {
    /// What became of some deliveries that are due.
    struct Outcome {
        /// May go out now.
        var sending: [DeliveryRecord] = []
        /// To be asked about again at their due time, which is later now; their outcome says why.
        var waiting: [DeliveryRecord] = []
        /// Never go out; their outcome says why.
        var ended: [DeliveryRecord] = []
        /// Deliveries that were told to wait before, or just now, and are not to go out any more; all devices where none is named.
        var displaced: [(nid: String, device: String?)] = []
    }

    private struct Group: Hashable {
        let app: String
        let user: String
        let name: String
    }

    /// Events whose channel is known, at about 200 bytes each; more than are ruled on together.
    static let eventsMax = 4096
    /// Notifications whose ruling is remembered for the participant's other devices, at about 200 bytes each.
    static let rulingsMax = 50_000
    private static let dayMilliseconds: Int64 = 86_400_000

    /// In force now.
    var definitions: DefinitionSet {
        didSet { isUniform = Self.isUniform(definitions) }
    }
    /// No definition says anything of its own, so nobody needs to know which one an event belongs to.
    private var isUniform: Bool
    private var budget = PushBudget()
    /// By event.
    private var channels = RecentTable<String, String>(countMax: PushRules.eventsMax, ageMax: PushRules.dayMilliseconds)
    /// Send or drop, by nid; with the device for a silent push.
    private var rulings = RecentTable<String, PushBudget.Verdict>(countMax: PushRules.rulingsMax, ageMax: PushRules.dayMilliseconds)

    init(definitions: DefinitionSet) {
        self.definitions = definitions
        isUniform = Self.isUniform(definitions)
    }

    private static func isUniform(_ definitions: DefinitionSet) -> Bool {
        definitions.names.allSatisfy { name in
            definitions.definition(named: name).map { $0.quietHours == nil && $0.alerts == .standard } ?? true
        }
    }

    // MARK: What has to be known

    /// Whether the delivery's event has to be learned before it can be ruled on.
    func needsEvent(of delivery: DeliveryRecord) -> Bool {
        !isUniform && delivery.attempts == 0 && delivery.message.map { $0.policy != .sync } == true && channels[delivery.event] == nil
    }

    /// - Parameters:
    ///   - channel: nil when there is no such event: then the standard limits apply, without quiet hours.
    ///   - now: milliseconds since 1970.
    mutating func learn(event: String, channel: String?, now: Int64) {
        channels.set(channel ?? "", for: event, now: now)
    }

    /// Remembers what an earlier process told to wait; other deliveries are passed over.
    mutating func restore(_ delivery: DeliveryRecord, now: Int64) {
        guard delivery.attempts == 0, let message = delivery.message, message.expiresAt > now, let reason = delivery.outcome,
            [PushBudget.Reason.quietHours, .alertCap, .silentBudget].contains(where: { $0.rawValue == reason })
        else { return }
        budget.restore(push(delivery, message), isQuiet: reason == PushBudget.Reason.quietHours.rawValue, now: now)
    }

    // MARK: Ruling

    /// - Parameters:
    ///   - deliveries: due, the oldest first; each event learned where that is needed.
    ///   - now: milliseconds since 1970.
    mutating func rule(_ deliveries: [DeliveryRecord], now: Int64) -> Outcome {
        var outcome = Outcome()
        var alerts: Set<Group> = []
        // Visible ones first: a silent one is not needed beside them.
        for isSilent in [false, true] {
            for delivery in deliveries where (delivery.message?.policy == .sync) == isSilent {
                guard delivery.attempts == 0, let message = delivery.message, message.expiresAt > now else {
                    outcome.sending.append(delivery)
                    continue
                }
                let push = push(delivery, message)
                let group = push.group.map { Group(app: push.app, user: push.user, name: $0) }
                let verdict = rule(push, of: delivery, isAlertPending: group.map(alerts.contains) ?? false, now: now, &outcome)
                if verdict == .send, !isSilent, let group { alerts.insert(group) }
            }
        }
        return outcome
    }

    private mutating func rule(
        _ push: PushBudget.Push, of delivery: DeliveryRecord, isAlertPending: Bool, now: Int64, _ outcome: inout Outcome
    ) -> PushBudget.Verdict {
        let key = name(push.id, device: push.device)
        let settings = settings(of: delivery)
        var verdict: PushBudget.Verdict
        if let known = rulings[key] {
            verdict = known
        } else {
            let ruling = budget.rule(
                push, quietHours: settings.quietHours, alerts: settings.alerts, isAlertPending: isAlertPending, now: now)
            verdict = ruling.verdict
            for nid in ruling.displaced {
                outcome.displaced.append((nid, push.device))
                rulings.set(.drop(.displaced), for: name(nid, device: push.device), now: now)
            }
        }
        var delivery = delivery
        switch verdict {
        case .send:
            rulings.set(verdict, for: key, now: now)
            outcome.sending.append(delivery)
        case .drop(let reason):
            rulings.set(verdict, for: key, now: now)
            delivery.state = .cancelled
            delivery.outcome = reason.rawValue
            outcome.ended.append(delivery)
        case .wait(let until):
            let isQuiet = settings.quietHours?.end(at: now, timezone: push.timezone) != nil
            let reason: PushBudget.Reason = push.policy == .sync ? .silentBudget : isQuiet ? .quietHours : .alertCap
            delivery.dueAt = until
            delivery.outcome = reason.rawValue
            outcome.waiting.append(delivery)
        }
        return verdict
    }

    private func settings(of delivery: DeliveryRecord) -> (quietHours: QuietHours?, alerts: AlertLimits) {
        guard !isUniform, let channel = channels[delivery.event], let definition = definitions.match(channel: channel)?.definition
        else { return (nil, .standard) }
        return (definition.quietHours, definition.alerts)
    }

    /// One ruling for all devices of a participant where the push is visible, because they show one alert.
    private func push(_ delivery: DeliveryRecord, _ message: PushMessage) -> PushBudget.Push {
        PushBudget.Push(
            app: delivery.app, user: delivery.user, device: message.policy == .sync ? delivery.device : nil, id: delivery.nid,
            policy: message.policy, group: message.group, expiresAt: message.expiresAt, committedAt: message.committedAt)
    }

    private func name(_ nid: String, device: String?) -> String { device.map { "\(nid)/\($0)" } ?? nid }
}
