package import HubCore
internal import HubDefinitions

/// Settlements and late pushes as a pure value: the delivery task's work for the store.
///
/// The plan keeps the context of every awaited event. It turns due targets into rows, by the roster as it is then, and gathers everything
/// that belongs in one transaction. A turn is `begin`, one `take` per piece of work, `takeWrite`, and `takeLate`. One task owns it.
package struct PushPlan: ~Copyable, Sendable {
    package enum Work: Sendable {
        /// The event is committed and awaited.
        case opened(PushContext)
        /// Recipients whose last awaited target confirmed. `at`: milliseconds since 1970.
        case confirmed(event: String, recipients: [Int], at: Int64)
        /// A recipient of whom nothing is awaited.
        case confirmedLate(event: String, recipient: Int, at: Int64)
        /// One connection has read a replay of several events.
        case replayed([Replay.Item], at: Int64)
        /// `settled`: recipients without a further awaited target.
        case push(event: String, [Escalation.Target], settled: [Int])
        /// A receipt of an event with no open wait: pushes on their way to a gateway stop.
        case late(event: String, LateReceipt)
        case closed(event: String)
        /// Another node awaits the event from now on.
        case abandoned(event: String)
    }

    package struct LateReceipt: Sendable {
        package let cancellation: PushCancellation
        /// The confirming device, where the participant's others are to be cleared; nil: none is cleared.
        package var clearingFrom: String?

        package init(cancellation: PushCancellation, clearingFrom: String? = nil) {
            self.cancellation = cancellation
            self.clearingFrom = clearingFrom
        }
    }

    /// Rows and settlements for one transaction.
    package struct Write: Sendable {
        package var rows: [PushRecord]
        package var settlements: [RecipientSettlement]
    }

    /// A roster as it was read in this turn.
    private struct Roster {
        var session: Session?
        var entries: [String: EventAudience.Entry] = [:]
    }

    private struct Place: Hashable {
        let app: String
        let channel: String
    }

    private let tokenAge: TokenAge
    private var contexts: [String: PushContext] = [:]
    private var rows: [PushRecord] = []
    private var settlements = Settlements()
    private var late: [String: [LateReceipt]] = [:]
    /// A thousand events of one session may fall due together after a restart: each roster is read once per turn.
    private var rosters: [Place: Roster] = [:]

    /// Rows from which a transaction does not wait for more.
    package static let rowsMax = 2000

    package init(tokenAge: TokenAge = .standard) {
        self.tokenAge = tokenAge
    }

    /// For tests: events whose context is kept.
    package var contextCount: Int { contexts.count }

    /// Begins a turn: rosters are read anew.
    package mutating func begin() { rosters = [:] }

    /// The event whose audience has to be read before this work is taken; nil: none.
    package func need(of work: Work) -> PushContext? {
        guard case .push(let event, _, _) = work, let context = contexts[event] else { return nil }
        return rosters[Self.place(of: context)] == nil ? context : nil
    }

    /// - Parameter audience: the answer to `need`; nil: the event's session is gone, or nothing was needed.
    /// - Returns: texts that could not be made. The publish was checked, but a definition may change between two starts.
    @discardableResult
    package mutating func take(_ work: Work, _ audience: EventAudience? = nil, at now: Moment) -> [RenderingError] {
        switch work {
        case .opened(let context): contexts[context.record.id] = context
        case .confirmed(let event, let recipients, let at): settlements.confirmed(event, recipients, at: at)
        case .confirmedLate(let event, let recipient, let at): settlements.confirmed(event, [recipient], at: at)
        case .replayed(let items, let at): for item in items { settlements.confirmed(item.event, [item.recipient], at: at) }
        case .closed(let event):
            contexts[event] = nil
            settlements.closed(event)
        case .abandoned(let event): contexts[event] = nil
        case .late(let event, let receipt): late[event, default: []].append(receipt)
        case .push(let event, let targets, let settled):
            guard let context = contexts[event] else { break }
            let place = Self.place(of: context)
            if rosters[place] == nil {
                rosters[place] = Roster(
                    session: audience?.session,
                    entries: Dictionary((audience?.entries ?? []).map { ($0.user, $0) }, uniquingKeysWith: { first, _ in first }))
            }
            settlements.pushed(event, settled)
            return add(targets, of: context, rosters[place] ?? Roster(), at: now)
        }
        return []
    }

    /// Whether the rows are enough for a transaction of their own.
    package var isFull: Bool { rows.count >= Self.rowsMax }

    /// Everything to write in one transaction; nil: nothing.
    package mutating func takeWrite() -> Write? {
        let write = Write(rows: rows, settlements: settlements.take())
        rows = []
        return write.rows.isEmpty && write.settlements.isEmpty ? nil : write
    }

    /// Late receipts by event, to be carried out after the turn's write.
    package mutating func takeLate() -> [String: [LateReceipt]] {
        defer { late = [:] }
        return late
    }

    private static func place(of context: PushContext) -> Place { Place(app: context.record.app, channel: context.record.channel) }

    // MARK: Rows

    /// One row per device to push to, or one that says why there is none.
    private mutating func add(_ targets: [Escalation.Target], of context: PushContext, _ roster: Roster, at now: Moment) -> [RenderingError]
    {
        let (record, now) = (context.record(at: now), now.wall)
        var rendering = Rendering(
            definition: context.definition, event: record, channel: context.placeholders, session: roster.session, data: context.data)
        var problems: [RenderingError] = []
        for target in targets {
            let nid = NotificationID.make(event: record.id, app: record.app, user: target.user)
            func row(_ state: PushState, _ reason: String, device: Device? = nil, message: PushMessage? = nil) -> PushRecord {
                PushRecord(
                    nid: nid, event: record.id, app: record.app, user: target.user, device: device?.id ?? "", state: state, reason: reason,
                    dueAt: now, message: message, route: device?.route)
            }
            guard let entry = roster.entries[target.user],
                let variant = context.event.variant(
                    user: target.user, role: entry.participant?.role, channelUser: context.placeholders.user, data: context.data)
            else {
                rows.append(row(.cancelled, "left"))
                continue
            }
            guard record.committedAt + variant.ttlMilliseconds > now else {
                rows.append(row(.expired, target.reason))
                continue
            }
            let concerned = entry.devices.filter { target.device == nil || $0.id == target.device }
            let usable = Decision.usableDevices(tokenAge.worthTrying(concerned, for: variant.policy, now: now))
            guard !usable.isEmpty else {
                rows.append(row(.undeliverable, Decision.unreachability(concerned, now: now)))
                continue
            }
            do throws(RenderingError) {
                for device in usable {
                    guard
                        let message = try rendering.message(variant, participant: entry.participant, nid: nid, locale: device.locale)
                    else {
                        rows.append(row(.undeliverable, "no text"))
                        break
                    }
                    let reason = target.isHubLate ? "\(target.reason), not confirmed, hub late" : "\(target.reason), not confirmed"
                    rows.append(row(.due, reason, device: device, message: message))
                }
            } catch {
                problems.append(error)
                rows.append(row(.undeliverable, "no text"))
            }
        }
        return problems
    }
}
