internal import HubCore
internal import HubDefinitions
internal import HubDelivery

/// Rules on deliveries that are due and have not been attempted: `PushBudget` by the settings of their channels' definitions.
///
/// A value without I/O, owned by the outbox. Which channel an event belongs to is read by the owner and learned here.
struct PushRules {
    /// The rulings on some deliveries that are due.
    struct Outcome {
        /// May go out now.
        var sending: [PushRecord] = []
        /// To be asked about again at their due time, which is later now; their outcome says why.
        var waiting: [PushRecord] = []
        /// Never go out; their outcome says why.
        var ended: [PushRecord] = []
        /// Deliveries that were told to wait before, or just now, and are not to go out any more.
        var displaced: [Displaced] = []
    }

    struct Displaced {
        var nid: String
        /// Nil: all devices.
        var device: String?
        /// On devices in this time zone; nil: in every one.
        var timezone: String?
        /// When its quiet hours end, in milliseconds since 1970; nil: it has none now.
        var quietUntil: Int64?
    }

    private struct DeviceName: Hashable {
        let app: String
        let user: String
        let device: String
    }

    private struct Zone {
        /// Nil: the device names none, or an unknown one.
        let name: String?
        let readAt: Int64
    }

    private struct Group: Hashable {
        let app: String
        let user: String
        let name: String
    }

    /// Events whose channel is known, at about 200 bytes each; more than are ruled on together.
    static let eventsMax = 4096
    /// Notifications whose ruling is remembered for the participant's other devices, at about 100 bytes each.
    static let rulingsMax = 50_000
    /// Devices whose time zone is remembered, at about 200 bytes each, and for how long: people travel.
    static let zonesMax = 20_000
    static let zoneAgeMilliseconds: Int64 = 10 * 60_000
    private static let dayMilliseconds: Int64 = 86_400_000

    /// In force now.
    var definitions: DefinitionSet {
        didSet { isUniform = Self.isUniform(definitions) }
    }
    /// No definition says anything of its own, so nobody needs to know which one an event belongs to.
    private var isUniform: Bool
    private var budget = PushBudget()
    private var zones = RecentTable<DeviceName, Zone>(countMax: PushRules.zonesMax, ageMax: PushRules.dayMilliseconds)
    /// Channels by event. Send or drop, by nid; with the device for a silent push, with the time zone where quiet hours ended it.
    private var memory = RulingMemory(eventsMax: PushRules.eventsMax, verdictsMax: PushRules.rulingsMax)

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
    func needsEvent(of delivery: PushRecord) -> Bool {
        !isUniform && delivery.attempts == 0 && delivery.address == nil && delivery.timing.map { $0.policy != .sync } == true
            && memory.channel(ofEvent: delivery.event) == nil
    }

    /// Whether something has to be learned about any of these before they can be ruled on. Mostly they are of one event.
    func isAnyUnknown(_ deliveries: [PushRecord], now: Int64) -> Bool {
        if isUniform { return false }
        var known: String?
        return deliveries.contains { delivery in
            if delivery.event != known {
                if needsEvent(of: delivery) { return true }
                if memory.channel(ofEvent: delivery.event) != nil { known = delivery.event }
            }
            return needsZone(of: delivery, now: now)
        }
    }

    /// - Parameters:
    ///   - channel: nil when there is no such event: then the standard limits apply, without quiet hours.
    ///   - now: milliseconds since 1970.
    mutating func learn(event: String, channel: String?, now: Int64) {
        memory.learn(event: event, channel: channel ?? "", now: now)
    }

    /// Whether the device's time zone has to be learned before its delivery can be ruled on. Asked once the event is known.
    func needsZone(of delivery: PushRecord, now: Int64) -> Bool {
        guard delivery.attempts == 0, delivery.address == nil, Self.isHeldBack(delivery.timing?.policy),
            settings(of: delivery).quietHours != nil
        else { return false }
        guard let zone = zones[deviceName(of: delivery)] else { return true }
        return zone.readAt <= now - Self.zoneAgeMilliseconds
    }

    /// - Parameter timezone: as the device names it; nil: it names none.
    /// - Returns: whether it is the name of a time zone; the definition's counts where it is not.
    mutating func learn(device delivery: PushRecord, timezone: String?, now: Int64) -> Bool {
        let isKnown = timezone.map(QuietHours.isKnown(timezone:)) ?? true
        zones.set(Zone(name: isKnown ? timezone : nil, readAt: now), for: deviceName(of: delivery), now: now)
        return isKnown
    }

    /// Whether a delivery is one of those that are not to go out any more.
    func covers(_ displaced: Displaced, _ delivery: PushRecord) -> Bool {
        guard let timezone = displaced.timezone else { return true }
        if memory.channel(ofEvent: delivery.event) == nil || zones[deviceName(of: delivery)] == nil {
            // Told to wait by an earlier process: of its zone only the end of the quiet hours is known.
            return displaced.quietUntil == delivery.dueAt
        }
        return self.timezone(of: delivery, settings(of: delivery).quietHours) == timezone
    }

    /// Forgets what was ruled by times that do not hold any more; what waits is to be restored.
    mutating func forget() { self = PushRules(definitions: definitions) }

    /// Remembers what an earlier process told to wait; other deliveries are passed over.
    mutating func restore(_ delivery: PushRecord, now: Int64) {
        guard delivery.attempts == 0, let message = delivery.message, message.expiresAt > now, let reason = delivery.outcome,
            [PushBudget.Reason.quietHours, .alertCap, .silentBudget].contains(where: { $0.rawValue == reason })
        else { return }
        budget.restore(
            push(delivery, message, timezone: nil), quietUntil: reason == PushBudget.Reason.quietHours.rawValue ? delivery.dueAt : nil,
            now: now)
    }

    // MARK: Ruling

    /// - Parameters:
    ///   - deliveries: due, the oldest first; each event learned where that is needed.
    ///   - now: milliseconds since 1970.
    mutating func rule(_ deliveries: [PushRecord], now: Int64) -> Outcome {
        var outcome = Outcome()
        var alerts: Set<Group> = []
        // Mostly all are of one event.
        var known: (event: String, settings: Settings)?
        // Visible ones first: a silent one is not needed beside them.
        for isSilent in deliveries.contains(where: { $0.timing?.policy == .sync }) ? [false, true] : [false] {
            for delivery in deliveries where (delivery.timing?.policy == .sync) == isSilent {
                // An address stands for nobody whose alerts could be counted.
                guard delivery.attempts == 0, delivery.address == nil, let message = delivery.message, message.expiresAt > now else {
                    outcome.sending.append(delivery)
                    continue
                }
                let settings = if let known, known.event == delivery.event { known.settings } else { settings(of: delivery) }
                known = (delivery.event, settings)
                let push = push(delivery, message, timezone: timezone(of: delivery, settings.quietHours))
                let group = push.group.map { Group(app: push.app, user: push.user, name: $0) }
                let verdict = rule(push, of: delivery, settings, isAlertPending: group.map(alerts.contains) ?? false, now: now, &outcome)
                if verdict == .send, !isSilent, let group { alerts.insert(group) }
            }
        }
        return outcome
    }

    private mutating func rule(
        _ push: PushBudget.Push, of delivery: PushRecord, _ settings: Settings, isAlertPending: Bool, now: Int64, _ outcome: inout Outcome
    ) -> PushBudget.Verdict {
        let isQuiet = Self.isHeldBack(push.policy) && settings.quietHours?.end(at: now, timezone: push.timezone) != nil
        // While some of a participant's devices have quiet hours, the others do not wait for them.
        let zoneKey = RulingMemory.Name(nid: push.id, timezone: push.timezone)
        let key = isQuiet || push.device == nil && push.timezone == nil ? zoneKey : RulingMemory.Name(nid: push.id, device: push.device)
        var verdict: PushBudget.Verdict
        // Mostly three times the same name.
        let wholeKey = push.timezone == nil ? zoneKey : RulingMemory.Name(nid: push.id, timezone: nil)
        if let known = memory.verdict(key) ?? (zoneKey == key ? nil : end(zoneKey))
            ?? (wholeKey == key || wholeKey == zoneKey ? nil : end(wholeKey))
        {
            verdict = known
        } else {
            let ruling = budget.rule(
                push, quietHours: settings.quietHours, alerts: settings.alerts, isAlertPending: isAlertPending, now: now)
            verdict = ruling.verdict
            for nid in ruling.displaced {
                outcome.displaced.append(Displaced(nid: nid, device: push.device, timezone: nil))
                memory.note(.drop(.displaced), of: RulingMemory.Name(nid: nid, device: push.device), now: now)
            }
            let quietUntil: Int64? = if isQuiet, case .wait(let end) = ruling.verdict { end } else { nil }
            for nid in ruling.displacedInZone {
                outcome.displaced.append(Displaced(nid: nid, device: nil, timezone: push.timezone, quietUntil: quietUntil))
                memory.note(.drop(.displaced), of: RulingMemory.Name(nid: nid, timezone: push.timezone), now: now)
            }
        }
        var delivery = delivery
        switch verdict {
        case .send:
            memory.note(verdict, of: key, now: now)
            outcome.sending.append(delivery)
        case .drop(let reason):
            memory.note(verdict, of: key, now: now)
            delivery.state = .cancelled
            delivery.outcome = reason.rawValue
            outcome.ended.append(delivery)
        case .wait(let until):
            let reason: PushBudget.Reason = push.policy == .sync ? .silentBudget : isQuiet ? .quietHours : .alertCap
            delivery.dueAt = until
            delivery.outcome = reason.rawValue
            outcome.waiting.append(delivery)
        }
        return verdict
    }

    private typealias Settings = (quietHours: QuietHours?, alerts: AlertLimits)

    /// A ruling that something is never sent.
    private func end(_ key: RulingMemory.Name) -> PushBudget.Verdict? {
        let verdict = memory.verdict(key)
        return if case .drop? = verdict { verdict } else { nil }
    }

    private func settings(of delivery: PushRecord) -> Settings {
        guard !isUniform, let channel = memory.channel(ofEvent: delivery.event),
            let definition = definitions.match(channel: channel)?.definition
        else { return (nil, .standard) }
        return (definition.quietHours, definition.alerts)
    }

    /// The device's own zone wins over the definition's; nil where no quiet hours hold it back.
    private func timezone(of delivery: PushRecord, _ quietHours: QuietHours?) -> String? {
        guard Self.isHeldBack(delivery.timing?.policy) else { return nil }
        return quietHours.map { zones[deviceName(of: delivery)]?.name ?? $0.timezone }
    }

    private static func isHeldBack(_ policy: Policy?) -> Bool { policy == .notify || policy == .pushOnly }

    private func deviceName(of delivery: PushRecord) -> DeviceName {
        DeviceName(app: delivery.app, user: delivery.user, device: delivery.device)
    }

    /// One ruling for all devices of a participant where the push is visible, because they show one alert.
    private func push(_ delivery: PushRecord, _ message: PushMessage, timezone: String?) -> PushBudget.Push {
        PushBudget.Push(
            app: delivery.app, user: delivery.user, device: message.policy == .sync ? delivery.device : nil, id: delivery.nid,
            policy: message.policy, group: message.group, expiresAt: message.expiresAt, committedAt: message.committedAt,
            timezone: timezone, isClear: delivery.purpose == .clear)
    }
}
