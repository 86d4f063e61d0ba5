internal import HubCore

/// How many visible pushes one participant gets: a definition's `alerts`.
package struct AlertLimits: Sendable, Equatable {
    /// So many at once, and one more each `every`.
    package var burst: Int
    package var every: Duration
    /// Within 24 hours; 0: no limit.
    package var perDay: Int

    package static let standard = AlertLimits(burst: 5, every: .seconds(10), perDay: 0)
    package static let burstMax = 1000
    package static let everyMax = Duration.seconds(86_400)

    package init(burst: Int, every: Duration, perDay: Int) {
        self.burst = burst
        self.every = every
        self.perDay = perDay
    }
}

/// Whether a push that is due is sent now, later or never: quiet hours, the silent budget of devices and the alert cap of
/// participants, in this order.
///
/// A plain value over the wall clock, owned by one thread, without I/O. What it says `wait` to is asked about again at that time;
/// it has to be kept, durably, by the caller. What it forgets (a crash, or its bounds) makes pushes more, never fewer.
package struct PushBudget: Sendable {
    /// One push that is due: of a participant where it is visible, of one device where it is silent.
    package struct Push: Sendable, Equatable {
        package var app: String
        package var user: String
        /// Of a silent push.
        package var device: String?
        /// Its `nid`, which tells it from others when it is asked about again.
        package var id: String
        package var policy: Policy
        /// What it replaces on the device; nil: nothing.
        package var group: String?
        /// Milliseconds since 1970.
        package var expiresAt: Int64
        /// Of its event, in milliseconds since 1970: tells the newer of a group from the older. Of two that are equal, the one that
        /// is asked about later is the newer.
        package var committedAt: Int64
        /// Of the device that it goes to, for quiet hours; nil: that of the definition. Devices of one participant in different zones
        /// are asked about one by one while some of them have quiet hours.
        package var timezone: String?
        /// A silent push that tells nothing, but takes a notification back: it takes the place of no other silent push that waits, and
        /// gives way to any.
        package var isClear: Bool

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

    package enum Verdict: Sendable, Equatable {
        case send
        /// Ask again then; milliseconds since 1970.
        case wait(until: Int64)
        case drop(Reason)
    }

    /// Why a push is never sent; for the trail.
    package enum Reason: String, Sendable {
        case quietHours = "quiet hours"
        case alertCap = "alert cap"
        case dailyCap = "daily alert cap"
        case silentBudget = "silent budget"
        /// A visible push of the same group tells it as well.
        case alertPending = "alert pending"
        /// A newer one of the same group has taken its place.
        case displaced
    }

    package struct Ruling: Sendable, Equatable {
        package var verdict: Verdict
        /// Ids of pushes that were told to wait and have no purpose any more, because this one is newer: of the participant, or
        /// of the device where it is silent. To be cancelled.
        package var displaced: [String]
        /// The same, of pushes that waited for the end of quiet hours: only on devices in the time zone of this one.
        package var displacedInZone: [String]

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

    /// Whose devices a push is held back on, or asked about.
    private enum Zone: Equatable {
        case every
        case named(String)
        /// After a restart: the one whose quiet hours end then, in milliseconds since 1970.
        case waking(at: Int64)
    }

    private struct Held {
        let group: String
        let id: String
        let expiresAt: Int64
        let committedAt: Int64
        /// Milliseconds since 1970.
        let until: Int64
        /// Waits for the end of quiet hours, so it does not come soon.
        let isQuiet: Bool
        /// Where quiet hours hold it back.
        let zone: Zone
        let isClear: Bool

        /// Without a group a push stands for itself, and replaces nothing.
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
        /// Of two silent pushes of one device, whether this one stays.
        func outranks(_ push: Push) -> Bool { id != push.id && (isClear == push.isClear ? isNewer(than: push) : push.isClear) }
        /// Quiet hours of another zone are another device's.
        /// - Parameter quietUntil: when those of the zone end that is asked about; nil: it has none now.
        func concerns(_ other: Zone, quietUntil: Int64?, now: Int64) -> Bool {
            switch (zone, other) {
            case (.every, _), (_, .every): true
            case (.waking(let end), .named): quietUntil.map { $0 == end } ?? (end <= now)
            default: zone == other
            }
        }
    }

    private struct Account {
        /// When the bucket will be full again, in milliseconds since 1970.
        var fullAt: Int64 = 0
        var dayBegan: Int64 = 0
        var dayCount = 0
        /// Told to wait, the oldest first: one of each group.
        var held: [Held] = []

        func hasNewer(than push: Push, in zone: Zone, quietUntil: Int64? = nil, now: Int64) -> Bool {
            held.contains {
                $0.group == push.group ?? push.id && $0.isNewer(than: push) && $0.concerns(zone, quietUntil: quietUntil, now: now)
            }
        }

        /// Takes away what a push replaces, and the push itself.
        /// - Parameter quietUntil: until when quiet hours hold the push back; nil: they do not.
        /// - Returns: the ids of the others.
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
                    // On a device in another zone it waits for its turn still.
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

        /// - Returns: what gives way to it, because too many wait.
        mutating func hold(_ push: Push, until: Int64, quietIn zone: Zone? = nil) -> String? {
            let isQuiet = zone != nil
            let isFull = held.count { $0.isQuiet == isQuiet } >= PushBudget.heldMax
            // In the night the new one is not remembered instead, and waits for itself: nothing is to be lost before the morning.
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

    /// Participants whose alerts of the last day are remembered, at about 150 bytes each.
    package static let peopleMax = 100_000
    /// Devices whose silent pushes are remembered, at about 200 bytes each.
    package static let devicesMax = 200_000
    /// Groups of one participant that wait for their turn; the oldest gives way. As many are remembered that wait for the end of
    /// quiet hours.
    package static let heldMax = 16
    /// Both gateways hold silent pushes back beyond some an hour: one each 20 minutes makes three.
    package static let silentIntervalMilliseconds: Int64 = 20 * 60_000
    private static let dayMilliseconds: Int64 = 86_400_000

    /// By the hash of app and user: of 64 bits, no two of these are the same, and looking them up takes a fraction of the time.
    private var people: RecentTable<Int, Account>
    private var devices: RecentTable<DeviceKey, SilentAccount>

    package init(peopleMax: Int = PushBudget.peopleMax, devicesMax: Int = PushBudget.devicesMax) {
        people = RecentTable(countMax: peopleMax, ageMax: Self.dayMilliseconds)
        devices = RecentTable(countMax: devicesMax, ageMax: Self.silentIntervalMilliseconds)
    }

    package var personCount: Int { people.count }
    package var deviceCount: Int { devices.count }

    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - isAlertPending: whether a visible push of the same group to the same participant is on its way, as far as the caller
    ///     knows; those that were told to wait here are known here.
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

    /// Remembers a push that was told to wait by an earlier process. What is still waiting is to be restored before anything newer
    /// is asked about, or an older one could follow it.
    /// - Parameter quietUntil: when the quiet hours end that it waits for, which also says in whose zone; nil: it waits for another reason.
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
        // A wall clock that was set back must not make anybody wait for the time that was taken away.
        account.fullAt = min(max(account.fullAt, now), now + Int64(alerts.burst) * alerts.every.milliseconds)
        account.dayBegan = min(account.dayBegan, now)
        if now - account.dayBegan >= Self.dayMilliseconds {
            account.dayBegan = now
            account.dayCount = 0
        }
        if !account.held.isEmpty { account.held.removeAll { $0.expiresAt <= now } }
        return account
    }

    /// What is exempt counts all the same, down to an empty bucket.
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
