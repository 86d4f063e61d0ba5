internal import HubCore
package import HubDefinitions

/// Rules on a push that is due: it is sent now, later or never. Quiet hours, the silent budget of devices and the alert cap of participants
/// apply in this order.
///
/// A plain value over the wall clock, owned by one thread, without I/O. The caller stores each waiting push durably and asks again when its
/// time has come. Forgetting (a crash, or the bounds) makes pushes more, never fewer.
package struct PushBudget: Sendable {
    /// A push that is due: for a participant if visible, for one device if silent.
    package struct Push: Sendable, Equatable {
        /// Id of the app.
        package var app: String
        /// User id of the recipient.
        package var user: String
        /// Device of a silent push; nil for a visible one.
        package var device: String?
        /// The push's `nid`, by which it is recognised when asked about again.
        package var id: String
        /// Policy of the event.
        package var policy: Policy
        /// Group of notifications that replace each other on a device; nil for none.
        package var group: String?
        /// Time of expiry, in milliseconds since 1970.
        package var expiresAt: Int64
        /// Time of the event's commit, in milliseconds since 1970, which orders the pushes of a group. If equal, the push asked about later
        /// is the newer one.
        package var committedAt: Int64
        /// Time zone of the device, for quiet hours; nil for that of the definition. While some zones of a participant have quiet hours,
        /// devices in different zones are asked about one by one.
        package var timezone: String?
        /// Whether a silent push only clears a notification. It displaces no other waiting silent push, and gives way to any.
        package var isClear: Bool

        /// A push without device, group and time zone unless given.
        package init(
            app: String, user: String, device: String? = nil, id: String, policy: Policy, group: String? = nil, expiresAt: Int64,
            committedAt: Int64 = 0, timezone: String? = nil, isClear: Bool = false
        ) {
            self.app = app
            self.user = user
            self.device = device
            self.id = id
            self.policy = policy
            self.group = group
            self.expiresAt = expiresAt
            self.committedAt = committedAt
            self.timezone = timezone
            self.isClear = isClear
        }
    }

    /// Answer to a push that is due.
    package enum Verdict: Sendable, Equatable {
        case send
        /// The push waits; ask again at that time, in milliseconds since 1970.
        case wait(until: Int64)
        case drop(Reason)
    }

    /// Reasons for dropping a push, for the trail.
    package enum Reason: String, Sendable {
        case quietHours = "quiet hours"
        case alertCap = "alert cap"
        case dailyCap = "daily alert cap"
        case silentBudget = "silent budget"
        /// A visible push of the same group is on its way.
        case alertPending = "alert pending"
        /// A newer push of the same group has replaced it.
        case displaced
    }

    /// A verdict, with the waiting pushes that it displaces.
    package struct Ruling: Sendable, Equatable {
        /// Answer to the push.
        package var verdict: Verdict
        /// Ids of waiting pushes to cancel, because this one is newer: of the participant, or of the device if silent.
        package var displaced: [String]
        /// Ids of pushes that waited for the end of quiet hours, to cancel only on devices in this push's time zone.
        package var displacedInZone: [String]

        /// A verdict that displaces nothing unless given.
        package init(verdict: Verdict, displaced: [String] = [], displacedInZone: [String] = []) {
            self.verdict = verdict
            self.displaced = displaced
            self.displacedInZone = displacedInZone
        }
    }

    private struct DeviceKey: Hashable {
        let person: Person
        let device: String
    }

    /// Devices on which a push is held back, or about which it is asked.
    private enum Zone: Equatable {
        case every
        case named(String)
        /// After a restart: the zone whose quiet hours end at that time, in milliseconds since 1970.
        case waking(at: Int64)
    }

    private struct Held {
        let group: String
        let id: String
        let expiresAt: Int64
        let committedAt: Int64
        /// Time at which it is asked about again, in milliseconds since 1970.
        let until: Int64
        /// Whether the push waits for the end of quiet hours, so it does not come soon.
        let isQuiet: Bool
        /// Zone whose quiet hours hold the push back.
        let zone: Zone
        let isClear: Bool

        /// A push without a group stands for itself, and replaces nothing.
        init(_ push: Push, until: Int64 = 0, quietIn zone: Zone? = nil) {
            group = push.group ?? push.id
            id = push.id
            expiresAt = push.expiresAt
            committedAt = push.committedAt
            self.until = until
            isQuiet = zone != nil
            self.zone = zone ?? .every
            isClear = push.isClear
        }

        func isNewer(than push: Push) -> Bool { id != push.id && committedAt > push.committedAt }
        /// Whether this silent push stays rather than a second one to the same device.
        func outranks(_ push: Push) -> Bool { id != push.id && (isClear == push.isClear ? isNewer(than: push) : push.isClear) }
        /// Whether the held push is for devices of the other zone.
        /// - Parameter quietUntil: end of the other zone's quiet hours; nil if it has none now.
        func concerns(_ other: Zone, quietUntil: Int64?, now: Int64) -> Bool {
            switch (zone, other) {
            case (.every, _), (_, .every): true
            case (.waking(let end), .named): quietUntil.map { $0 == end } ?? (end <= now)
            default: zone == other
            }
        }
    }

    private struct Account {
        /// Time at which the bucket is full again, in milliseconds since 1970.
        var fullAt: Int64 = 0
        var dayBegan: Int64 = 0
        var dayCount = 0
        /// Waiting pushes, the oldest first, one per group.
        var held: [Held] = []

        func hasNewer(than push: Push, in zone: Zone, quietUntil: Int64? = nil, now: Int64) -> Bool {
            held.contains {
                $0.group == push.group ?? push.id && $0.isNewer(than: push) && $0.concerns(zone, quietUntil: quietUntil, now: now)
            }
        }

        /// Removes the push itself, and the pushes that it replaces.
        /// - Parameter quietUntil: end of the quiet hours that hold the push back; nil for none.
        /// - Returns: the ids of the replaced pushes.
        mutating func displace(
            by push: Push, in zone: Zone, quietUntil: Int64? = nil, now: Int64
        ) -> (everywhere: [String], inZone: [String]) {
            if held.isEmpty { return ([], []) }
            let group = push.group ?? push.id
            var displaced: (everywhere: [String], inZone: [String]) = ([], [])
            held.removeAll { other in
                guard other.group == group, !other.isNewer(than: push), other.concerns(zone, quietUntil: quietUntil, now: now)
                else { return false }
                if other.id == push.id {
                    // The push still waits for its turn on a device in another zone.
                    return !(quietUntil != nil && zone != .every && !other.isQuiet && other.until > now)
                }
                if other.zone == .every || zone == .every {
                    displaced.everywhere.append(other.id)
                } else {
                    displaced.inZone.append(other.id)
                }
                return true
            }
            return displaced
        }

        /// - Returns: id of the push that gives way, if too many wait.
        mutating func hold(_ push: Push, until: Int64, quietIn zone: Zone? = nil) -> String? {
            let isQuiet = zone != nil
            let isFull = held.count { $0.isQuiet == isQuiet } >= PushBudget.heldMax
            // In quiet hours nothing gives way, so that nothing is lost before the morning. The new push waits without being remembered.
            if isFull, isQuiet { return nil }
            let oldest = isFull ? held.firstIndex { !$0.isQuiet } : nil
            let id = oldest.map { held.remove(at: $0).id }
            held.append(Held(push, until: until, quietIn: zone))
            return id
        }
    }

    private struct SilentAccount {
        var sentAt: Int64?
        var held: Held?
    }

    /// Most participants whose alerts of the last day are remembered, at about 150 bytes each.
    package static let peopleMax = 100_000
    /// Most devices whose silent pushes are remembered, at about 200 bytes each.
    package static let devicesMax = 200_000
    /// Most waiting groups of one participant; the oldest gives way. As many more may wait for the end of quiet hours.
    package static let heldMax = 16
    /// Milliseconds between silent pushes to a device: three an hour. Both gateways hold back silent pushes beyond some an hour.
    package static let silentIntervalMilliseconds: Int64 = 20 * 60_000
    private static let dayMilliseconds: Int64 = 86_400_000

    /// Accounts by the hash of app and user. Hashes of 64 bits do not collide among so few, and a look-up takes a fraction of the time.
    private var people: RecentTable<Int, Account>
    private var devices: RecentTable<DeviceKey, SilentAccount>

    /// A budget without history; the bounds are parameters for tests.
    package init(peopleMax: Int = PushBudget.peopleMax, devicesMax: Int = PushBudget.devicesMax) {
        people = RecentTable(countMax: peopleMax, ageMax: Self.dayMilliseconds)
        devices = RecentTable(countMax: devicesMax, ageMax: Self.silentIntervalMilliseconds)
    }

    /// For tests: remembered participants.
    package var personCount: Int { people.count }
    /// For tests: remembered devices.
    package var deviceCount: Int { devices.count }

    /// Rules on a push that is due, in O(1).
    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - isAlertPending: whether a visible push of the same group to the participant is on its way, as far as the caller knows. Pushes
    ///     told to wait here are known here.
    package mutating func rule(
        _ push: Push, quietHours: QuietHours? = nil, alerts: AlertLimits = .standard, isAlertPending: Bool = false, now: Int64
    ) -> Ruling {
        switch push.policy {
        case .realtimeOnly: return Ruling(verdict: .send)
        case .sync: return ruleSilent(push, isAlertPending: isAlertPending, now: now)
        case .critical, .both: return count(push, alerts, now: now)
        case .notify, .pushOnly:
            if let end = quietHours?.end(at: now, timezone: push.timezone) { return ruleQuiet(push, alerts, until: end, now: now) }
            return ruleAlert(push, alerts, now: now)
        }
    }

    /// Remembers a push that an earlier process told to wait. Waiting pushes have to be restored before any newer push is asked about;
    /// otherwise an older one could follow.
    /// - Parameter quietUntil: end of the quiet hours for which the push waits, which also identifies the zone; nil for another reason to
    ///   wait.
    package mutating func restore(_ push: Push, alerts: AlertLimits = .standard, quietUntil: Int64? = nil, now: Int64) {
        let person = Person(app: push.app, user: push.user)
        if push.policy == .sync {
            let key = DeviceKey(person: person, device: push.device ?? "")
            var account = devices[key] ?? SilentAccount()
            if account.held?.outranks(push) != true { account.held = Held(push) }
            devices.set(account, for: key, now: now)
        } else {
            var account = account(person.hashValue, alerts, now: now)
            let zone = quietUntil.map(Zone.waking)
            if account.hasNewer(than: push, in: zone ?? .every, now: now) { return }
            _ = account.displace(by: push, in: zone ?? .every, now: now)
            _ = account.hold(push, until: quietUntil ?? now, quietIn: zone)
            people.set(account, for: person.hashValue, now: now)
        }
    }

    private func isWorthIt(_ push: Push, at time: Int64) -> Bool { time + Decision.remainingMillisecondsMin <= push.expiresAt }

    private static func zone(of push: Push) -> Zone { push.timezone.map(Zone.named) ?? .every }

    // MARK: Visible

    private func account(_ person: Int, _ alerts: AlertLimits, now: Int64) -> Account {
        var account = people[person] ?? Account()
        // A wall clock that was set back must not make anybody wait for the difference.
        account.fullAt = min(max(account.fullAt, now), now + Int64(alerts.burst) * alerts.every.milliseconds)
        account.dayBegan = min(account.dayBegan, now)
        if now - account.dayBegan >= Self.dayMilliseconds {
            account.dayBegan = now
            account.dayCount = 0
        }
        if !account.held.isEmpty { account.held.removeAll { $0.expiresAt <= now } }
        return account
    }

    /// Exempt pushes count all the same, down to an empty bucket.
    private mutating func count(_ push: Push, _ alerts: AlertLimits, now: Int64) -> Ruling {
        let person = Person(app: push.app, user: push.user).hashValue
        var account = account(person, alerts, now: now)
        let every = alerts.every.milliseconds
        account.fullAt = min(account.fullAt + every, now + Int64(alerts.burst) * every)
        account.dayCount += 1
        let displaced = account.displace(by: push, in: Self.zone(of: push), now: now)
        people.set(account, for: person, now: now)
        return Ruling(verdict: .send, displaced: displaced.everywhere, displacedInZone: displaced.inZone)
    }

    private mutating func ruleQuiet(_ push: Push, _ alerts: AlertLimits, until end: Int64, now: Int64) -> Ruling {
        guard isWorthIt(push, at: end) else { return Ruling(verdict: .drop(.quietHours)) }
        let person = Person(app: push.app, user: push.user).hashValue
        var account = account(person, alerts, now: now)
        let zone = Self.zone(of: push)
        if account.hasNewer(than: push, in: zone, quietUntil: end, now: now) { return Ruling(verdict: .drop(.displaced)) }
        let displaced = account.displace(by: push, in: zone, quietUntil: end, now: now)
        _ = account.hold(push, until: end, quietIn: zone)
        people.set(account, for: person, now: now)
        return Ruling(verdict: .wait(until: end), displaced: displaced.everywhere, displacedInZone: displaced.inZone)
    }

    private mutating func ruleAlert(_ push: Push, _ alerts: AlertLimits, now: Int64) -> Ruling {
        let person = Person(app: push.app, user: push.user).hashValue
        var account = account(person, alerts, now: now)
        let zone = Self.zone(of: push)
        if account.hasNewer(than: push, in: zone, now: now) { return Ruling(verdict: .drop(.displaced)) }
        var ruling = Ruling(verdict: .send)
        let every = alerts.every.milliseconds
        let freeAt = account.fullAt - Int64(alerts.burst - 1) * every
        (ruling.displaced, ruling.displacedInZone) = account.displace(by: push, in: zone, now: now)
        if alerts.perDay > 0, account.dayCount >= alerts.perDay {
            ruling.verdict = .drop(.dailyCap)
        } else if freeAt <= now {
            account.fullAt += every
            account.dayCount += 1
        } else if !isWorthIt(push, at: freeAt) {
            ruling.verdict = .drop(.alertCap)
        } else {
            if let oldest = account.hold(push, until: freeAt) { ruling.displaced.append(oldest) }
            ruling.verdict = .wait(until: freeAt)
        }
        people.set(account, for: person, now: now)
        return ruling
    }

    // MARK: Silent

    private mutating func ruleSilent(_ push: Push, isAlertPending: Bool, now: Int64) -> Ruling {
        let person = Person(app: push.app, user: push.user)
        let isAlertHeld = people[person.hashValue]?.held.contains { $0.group == push.group && !$0.isQuiet && $0.expiresAt > now } ?? false
        if isAlertPending || isAlertHeld { return Ruling(verdict: .drop(.alertPending)) }
        let key = DeviceKey(person: person, device: push.device ?? "")
        var account = devices[key] ?? SilentAccount()
        var ruling = Ruling(verdict: .send)
        if let held = account.held, held.expiresAt > now {
            if held.outranks(push) { return Ruling(verdict: .drop(.displaced)) }
            if held.id != push.id { ruling.displaced = [held.id] }
        }
        account.held = nil
        let freeAt = account.sentAt.map { min($0, now) + Self.silentIntervalMilliseconds } ?? now
        if freeAt <= now {
            account.sentAt = now
        } else if isWorthIt(push, at: freeAt) {
            account.held = Held(push)
            ruling.verdict = .wait(until: freeAt)
        } else {
            ruling.verdict = .drop(.silentBudget)
        }
        devices.set(account, for: key, now: now)
        return ruling
    }
}
