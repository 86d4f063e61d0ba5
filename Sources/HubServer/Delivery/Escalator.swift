internal import HubAPI
internal import HubCore
internal import HubDelivery
internal import Logging

/// What an event needs to be pushed later than it was published.
struct PushContext: Sendable {
    /// Its times are moved when the wall clock is set.
    var record: EventRecord
    let definition: ChannelDefinition
    let event: EventDefinition
    let placeholders: ChannelPattern.Match
    let data: JSONValue
}

/// Delivery's hand in the store: writes down who has confirmed, and makes pushes of those who have not when their time comes.
///
/// Apart from the delivery task, because reading a roster and writing a thousand rows must keep no publish waiting. One task
/// works in the order in which it was told; what is lost with the process is asked for again at the next start.
final class Escalator: Sendable {
    enum Work: Sendable {
        case opened(PushContext)
        /// - Parameter at: milliseconds since 1970.
        case confirmed(event: String, recipients: [Int], at: Int64)
        /// One connection has read a replay of several events.
        case replayed([Replay.Item], at: Int64)
        /// `settled`: recipients of whom nobody is waited for when these are pushed to.
        case push(event: String, [Escalation.Target], settled: [Int])
        /// A receipt for an event that nobody waits for any more: what is still on its way to a gateway is stopped.
        case late(event: String, LateReceipt)
        case closed(event: String)
    }

    struct LateReceipt: Sendable {
        let cancellation: PushCancellation
        /// The device that confirmed, where the participant's others are to be told; nil: nobody is.
        var clearingFrom: String?
    }

    private let inbox = Inbox<Work>()
    let reader: AudienceReader
    private let tokenAge: TokenAge
    private let store: any DeliveryStore
    private let outbox: Outbox
    private let time: any TimeSource
    private let logger: Logger

    /// Confirmations are written together: at most this long after they came.
    static let settleMilliseconds = 200

    init(
        reader: AudienceReader, store: any DeliveryStore, outbox: Outbox, tokenAge: TokenAge = .standard, time: any TimeSource,
        logger: Logger
    ) {
        self.reader = reader
        self.tokenAge = tokenAge
        self.store = store
        self.outbox = outbox
        self.time = time
        self.logger = logger
    }

    func post(_ work: Work) { inbox.post(work) }
    func close() { inbox.close() }

    /// Works until `close`. Call once.
    func run() async {
        var contexts: [String: PushContext] = [:]
        var clock = ClockSteps()
        _ = clock.look(time)
        while let items = await inbox.next() {
            var turn = Turn()
            if let step = clock.look(time) {
                // How long an event is worth telling stays the same.
                for event in contexts.keys {
                    contexts[event]?.record.committedAt += step.milliseconds
                    contexts[event]?.record.expiresAt += step.milliseconds
                }
            }
            for item in items {
                switch item {
                case .opened(let context): contexts[context.record.id] = context
                case .confirmed(let event, let recipients, let at): turn.settlements.confirmed(event, recipients, at: at)
                case .replayed(let items, let at): for item in items { turn.settlements.confirmed(item.event, [item.recipient], at: at) }
                case .closed(let event):
                    contexts[event] = nil
                    turn.settlements.closed(event)
                case .push(let event, let targets, let settled):
                    guard let context = contexts[event] else { continue }
                    await add(targets, settled: settled, of: context, to: &turn)
                    if turn.rows.count >= Self.rowsMax { await write(&turn) }
                case .late(let event, let receipt): turn.late[event, default: []].append(receipt)
                }
            }
            await write(&turn)
            await cancel(turn.late)
            await pause()
        }
    }

    /// What came together: written in one transaction.
    private struct Turn {
        var rows: [PushRecord] = []
        var settlements = Settlements()
        /// By event.
        var late: [String: [LateReceipt]] = [:]
        /// By app and channel. A thousand events of one session may fall due together after a restart.
        var audiences: [[String]: Audience] = [:]
    }

    private struct Audience {
        var session: Session?
        var entries: [String: EventAudience.Entry] = [:]
    }

    /// Rows from which a turn does not wait for more.
    static let rowsMax = 2000

    /// Lets confirmations gather, unless somebody is to be pushed to.
    private func pause() async {
        do { try await Task.sleep(for: .milliseconds(Self.settleMilliseconds / 10)) } catch { return }
    }

    /// Writes bits and rows, and sends what is due. What the store refuses is tried again until it takes it: the bit that says that
    /// nobody is waited for must not be written without the row that somebody is pushed to.
    private func write(_ turn: inout Turn) async {
        let (rows, settlements) = (turn.rows, turn.settlements.take())
        turn.rows = []
        if rows.isEmpty, settlements.isEmpty { return }
        let inserted = await untilDone("receipts and pushes could not be stored") {
            if rows.isEmpty {
                try await self.store.settle(settlements)
                return [PushRecord]()
            }
            return try await self.store.escalate(rows, settlements)
        }
        let due = inserted?.filter { $0.state == .due } ?? []
        if !due.isEmpty { await outbox.enqueue(due) }
    }

    /// - Returns: nil when the inbox was closed meanwhile; the next start then finds these events open.
    private func untilDone<Value: Sendable>(_ failure: String, _ work: () async throws -> Value) async -> Value? {
        while true {
            do { return try await work() } catch {
                logger.error("\(failure); trying again", metadata: ["error": "\(error)"])
                guard !inbox.isClosed else { return nil }
                do { try await Task.sleep(for: .seconds(1)) } catch { return nil }
            }
        }
    }

    // MARK: Pushing

    private func add(_ targets: [Escalation.Target], settled: [Int], of context: PushContext, to turn: inout Turn) async {
        let key = [context.record.app, context.record.channel]
        if turn.audiences[key] == nil {
            turn.audiences[key] = await untilDone("a roster could not be read") { try await self.audience(context) }
        }
        guard let audience = turn.audiences[key] else { return }
        turn.rows += rows(context, targets, audience)
        turn.settlements.pushed(context.record.id, settled)
    }

    /// Read now: roster, roles and tokens may have changed. Nobody, when the session is gone.
    private func audience(_ context: PushContext) async throws -> Audience {
        do {
            let read = try await reader.audience(app: context.record.app, context.definition, context.placeholders, context.event)
            return Audience(
                session: read.session, entries: Dictionary(read.entries.map { ($0.user, $0) }, uniquingKeysWith: { first, _ in first }))
        } catch is PublishRefusal {
            return Audience()
        }
    }

    /// One row for each device to push to, or one that says why there is none.
    private func rows(_ context: PushContext, _ targets: [Escalation.Target], _ audience: Audience) -> [PushRecord] {
        let record = context.record
        let now = time.wallMilliseconds
        var rendering = Rendering(
            definition: context.definition, event: record, channel: context.placeholders, session: audience.session, data: context.data)
        var rows: [PushRecord] = []
        for target in targets {
            let nid = NotificationID.make(event: record.id, app: record.app, user: target.user)
            func end(_ state: PushState, _ reason: String) {
                rows.append(
                    PushRecord(
                        nid: nid, event: record.id, app: record.app, user: target.user, device: "", state: state, reason: reason, dueAt: now
                    ))
            }
            guard let entry = audience.entries[target.user],
                let variant = context.event.variant(
                    user: target.user, role: entry.participant?.role, channelUser: context.placeholders.user, data: context.data)
            else {
                end(.cancelled, "left")
                continue
            }
            guard record.committedAt + variant.ttlMilliseconds > now else {
                end(.expired, target.reason)
                continue
            }
            let concerned = entry.devices.filter { target.device == nil || $0.id == target.device }
            let usable = Decision.usableDevices(tokenAge.worthTrying(concerned, for: variant.policy, now: now))
            guard !usable.isEmpty else {
                end(.undeliverable, Decision.unreachability(concerned, now: now))
                continue
            }
            for device in usable {
                do {
                    let message = try rendering.message(variant, participant: entry.participant, nid: nid, locale: device.locale)
                    guard let message else {
                        end(.undeliverable, "no text")
                        break
                    }
                    rows.append(
                        PushRecord(
                            nid: nid, event: record.id, app: record.app, user: target.user, device: device.id, state: .due,
                            reason: target.isHubLate ? "\(target.reason), not confirmed, hub late" : "\(target.reason), not confirmed",
                            dueAt: now, message: message, route: device.route))
                } catch {
                    // The publish was checked; but the definition may have been changed between two starts.
                    logger.error("a push could not be rendered", metadata: ["event": "\(record.id)", "error": "\(error)"])
                    end(.undeliverable, "no text")
                    break
                }
            }
        }
        return rows
    }

    /// Stops what is still on its way to a gateway, behind the pushes that were due together with it.
    /// - Parameter late: by event.
    private func cancel(_ late: [String: [LateReceipt]]) async {
        // Side by side, so that the store joins them to one transaction: who comes back has often missed dozens of events.
        await withTaskGroup { group in
            for (event, receipts) in late {
                group.addTask {
                    await self.cancel(event: event, receipts.map(\.cancellation))
                    for receipt in receipts { await self.clear(event: event, receipt) }
                }
            }
        }
    }

    private func cancel(event: String, _ cancellations: [PushCancellation]) async {
        do {
            let cancelled = try await store.cancelDeliveries(event: event, cancellations)
            if !cancelled.isEmpty { await outbox.drop(cancelled) }
        } catch {
            logger.error("a push that is no longer needed could not be cancelled", metadata: ["event": "\(event)", "error": "\(error)"])
        }
    }

    /// Takes the notification back from the participant's devices that have got it. One receipt after the other: what the first has had
    /// written keeps the next from sending more.
    private func clear(event: String, _ receipt: LateReceipt) async {
        guard let device = receipt.clearingFrom else { return }
        do {
            let known = try await store.deliveries(event: event, user: receipt.cancellation.user)
            let clears = Clearing.deliveries(after: receipt.cancellation, on: device, among: known, now: time.wallMilliseconds)
            if clears.isEmpty { return }
            await outbox.enqueue(try await store.escalate(clears, []))
        } catch {
            logger.error("a notification could not be taken back from other devices", metadata: ["event": "\(event)", "error": "\(error)"])
        }
    }
}

/// Bits to write, by event, in the order in which the events first changed.
private struct Settlements {
    private var byEvent: [String: RecipientSettlement] = [:]
    private var order: [String] = []

    mutating func confirmed(_ event: String, _ recipients: [Int], at: Int64) {
        change(event) { $0.confirmed += recipients.map { RecipientSettlement.Confirmation(recipient: $0, at: at) } }
    }
    mutating func pushed(_ event: String, _ recipients: [Int]) { change(event) { $0.pushed += recipients } }
    mutating func closed(_ event: String) { change(event) { $0.isClosed = true } }

    mutating func take() -> [RecipientSettlement] {
        defer { (byEvent, order) = ([:], []) }
        return order.compactMap { byEvent[$0] }
    }

    private mutating func change(_ event: String, _ change: (inout RecipientSettlement) -> Void) {
        if byEvent[event] == nil { order.append(event) }
        change(&byEvent[event, default: RecipientSettlement(event: event)])
    }
}
