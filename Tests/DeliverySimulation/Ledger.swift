import HubCore
import HubDefinitions
import HubDelivery

/// The truth of one event on one device, which the hub cannot know.
struct Cell {
    /// A person saw it on the socket's surface.
    var seenAt: Int64?
    /// The program behind the socket read it, seen or not.
    var readAt: Int64?
    /// It was read by a client that says nothing of its state, or nothing that could be ordered with its receipts.
    var readByStock = false
    /// In which life a receipt came to a loop that settles for certain, whether or not the delivery task has looked at it.
    var arrivedInLife: Int?
    var arrivedAt: Int64 = 0
    /// The hub learned of a receipt that follows the reading, and what it knew of the app then.
    var receiptAt: Int64?
    var receiptState: AppState = .unknown
    /// The app had said on another connection that it is in the background.
    var isContradicted = false
    /// In which life of the server a receipt came that settles for certain.
    var settledInLife: Int?
    var pushDecidedAt: Int64?
    var pushLife = 0
    /// Pushed with the commit, because of this.
    var atCommit: String?
    var pushShownAt: Int64?
    var shownInLife: Int?
    /// Why its push was not sent after all.
    var dropped: String?
    /// The program was running unseen and answered later than an app in the background does: no stock client tells.
    var ranUnseen = false
}

/// An event as the publisher, the store and the simulation know it.
final class SimEvent {
    let index: Int
    /// The definition's word for it.
    let eventName: String
    let channel: Int
    let policy: Policy
    let lifetime: Int64
    /// The publisher's own connection.
    let excluded: ConnectionID?
    var cells: [Cell]
    var tries = 0

    // The store's part.
    var record: EventRecord
    /// When it came to delivery last.
    var postedAt: Int64 = 0
    var committedAt: Int64 = 0
    var isCommitted = false
    /// In which life of the hub it was committed.
    var life = 0
    var users: [String] = []
    var notes: [RecipientNote] = []
    /// A person's place among the recipients.
    var places: [Int: Int] = [:]
    /// Per recipient.
    var confirmed: [Bool] = []
    var settled: [Bool] = []
    var isOpen = false
    /// Rows without a push, by person.
    var endings: [Int: String] = [:]

    /// Per loop, in the life in which it was committed.
    var attendedUpTo: [UInt64] = []
    var cursors: [UInt64?] = Array(repeating: nil, count: Simulation.loops)

    init(index: Int, eventName: String, channel: Int, policy: Policy, lifetime: Int64, excluded: ConnectionID?, devices: Int) {
        self.index = index
        self.eventName = eventName
        self.channel = channel
        self.policy = policy
        self.lifetime = lifetime
        self.excluded = excluded
        cells = Array(repeating: Cell(), count: devices)
        record = EventRecord(id: "", app: "1", channel: "", name: eventName, data: "", policy: policy, committedAt: 0, expiresAt: 0)
    }

    var name: String { record.id }
    /// On the simulation's clock.
    var expiresAt: Int64 { committedAt + lifetime }

    /// The hub's knowledge of a recipient, for a violation's text.
    func place(of person: Int) -> String {
        guard let place = places[person] else { return "no recipient" }
        return "\(notes[place]), confirmed \(confirmed[place]), settled \(settled[place]), ended \(endings[person] ?? "not")"
    }

    func setRecipients(_ recipients: RecipientOpening, people: [String: Int]) {
        users = recipients.snapshot.users
        notes = recipients.notes
        for (place, user) in users.enumerated() { if let person = people[user] { places[person] = place } }
        confirmed = Array(repeating: false, count: notes.count)
        settled = notes.map { $0.choice != .awaited }
    }
}

extension Simulation {
    /// The event's life is over: was everybody told, and nobody twice without a reason?
    func judge(_ event: SimEvent) {
        let channel = channels[event.channel]
        for (place, user) in event.users.enumerated() {
            report.pairs += 1
            guard let person = personIndex[user], event.notes[place].choice != .actor else { continue }
            let range = people[person].devices
            let cells = range.map { event.cells[$0 - channel.firstDevice] }
            if cells.contains(where: { $0.seenAt != nil }) { report.seenOnSocket += 1 }
            if cells.contains(where: { $0.pushShownAt != nil }) { report.pushed += 1 }
            if channel.kind.scope == .device {
                for (offset, cell) in cells.enumerated() where devices[range.lowerBound + offset].hasToken {
                    judge(event, [cell], "\(people[person].name)/\(devices[range.lowerBound + offset].name)", person)
                }
                if !range.contains(where: { devices[$0].hasToken }) { judgeUnreachable(event, cells) }
            } else if range.contains(where: { devices[$0].hasToken }) {
                judge(event, cells, people[person].name, person)
            } else {
                judgeUnreachable(event, cells)
            }
        }
        event.cells = []
    }

    private func judgeUnreachable(_ event: SimEvent, _ cells: [Cell]) {
        if !cells.contains(where: { $0.seenAt != nil }) { report.excused["no device that a push reaches, and not there", default: 0] += 1 }
    }

    private func judge(_ event: SimEvent, _ cells: [Cell], _ who: String, _ person: Int) {
        let seenAt = cells.compactMap(\.seenAt).min()
        let shownAt = cells.compactMap(\.pushShownAt).min()
        switch (seenAt, shownAt) {
        case (nil, nil): judgeLoss(event, cells, who, person)
        case (let seenAt?, _?): judgeDuplicate(event, cells, who, person, seenAt: seenAt)
        case (nil, _?):
            let isOneLife = cells.allSatisfy { $0.pushDecidedAt == nil || $0.pushLife == event.life }
            let isAwaited = event.places[person].map { event.notes[$0].choice == .awaited } ?? false
            if isAwaited, isOneLife, let decided = cells.compactMap(\.pushDecidedAt).min() {
                let way = cells.contains(where: \.readByStock) ? ", after a provisional receipt" : ""
                report.rescues[event.policy.rawValue + way, default: []].append(decided - event.committedAt)
            }
        default: break
        }
    }

    /// A refused write is tried again after a second; then the row, the gateway and its answer, in milliseconds.
    private static let lastWay: Int64 = 4_000

    private func judgeLoss(_ event: SimEvent, _ cells: [Cell], _ who: String, _ person: Int) {
        let lastCall = event.expiresAt - Decision.lastCallMilliseconds - 1000
        if let reason = cells.compactMap(\.dropped).first {
            report.excused["push dropped: \(reason)", default: 0] += 1
        } else if cells.contains(where: { $0.ranUnseen }) {
            report.excused["a stock client ran on unseen and answered", default: 0] += 1
        } else if stops.contains(where: { $0.from < event.expiresAt && $0.until > event.expiresAt - Self.lastWay }) {
            report.excused["expired while the lanes stood still", default: 0] += 1
        } else if people[person].devices.contains(where: { isRepeated(event, $0) }) {
            report.excused["expired while its gateway wanted another attempt", default: 0] += 1
        } else if people[person].devices.allSatisfy({ !devices[$0].hasToken || devices[$0].isUninstalled })
            || who.contains("/")
                && people[person].devices.contains(where: { devices[$0].isUninstalled && who.hasSuffix("/" + devices[$0].name) })
        {
            report.excused["the app is uninstalled", default: 0] += 1
        } else if people[person].changedAt >= event.postedAt {
            report.excused["left the session or the role meanwhile", default: 0] += 1
        } else if event.life != life, clockSteps.contains(where: { $0 >= event.postedAt && $0 <= event.expiresAt }) {
            // Its times in the store are those of the clock at its decision.
            report.excused["the clock was set, and the hub crashed", default: 0] += 1
        } else if slowCommits.contains(where: { $0.from < event.expiresAt && $0.until > lastCall + 1000 }) {
            report.excused["expired while the store was slow", default: 0] += 1
        } else if downtimes.contains(where: { $0.from < event.expiresAt && $0.until > lastCall }) {
            report.excused["expired while the server was down", default: 0] += 1
        } else if let decidedAt = cells.compactMap(\.pushDecidedAt).min(), decidedAt < event.expiresAt,
            decidedAt > event.expiresAt - Self.lastWay || cells.contains(where: { $0.pushDecidedAt != nil && $0.pushLife != life })
        {
            // Decided in time, and the gateway's answer or the crash in between took the rest of its short life.
            report.excused["expired on the way to the gateway", default: 0] += 1
        } else {
            report.lost += 1
            violation("lost \(describe(event)) for \(who), \(event.place(of: person)): \(cells)")
        }
    }

    private func isRepeated(_ event: SimEvent, _ device: Int) -> Bool {
        let key = RowKey(event: event.name, user: people[devices[device].person].name, device: devices[device].name)
        return rowIndex[key].map { rows[$0].record.attempts > 0 && !rows[$0].isDone || rows[$0].record.attempts > 1 } ?? false
    }

    private func judgeDuplicate(_ event: SimEvent, _ cells: [Cell], _ who: String, _ person: Int, seenAt: Int64) {
        let decidedAt = cells.compactMap(\.pushDecidedAt).min() ?? 0
        let life = cells.first { $0.pushDecidedAt == decidedAt }?.pushLife ?? 0
        let receiptAt = cells.compactMap(\.receiptAt).min()
        let reason: String
        if event.policy == .both || event.policy == .pushOnly {
            reason = "the policy asks for both surfaces"
        } else if let why = cells.compactMap(\.atCommit).first {
            reason = "pushed with the commit (\(why)), seen on the socket as well: same nid"
        } else if life != event.life {
            reason = "crash window"
        } else if seenAt >= decidedAt {
            reason = "seen on the socket after the push: same nid"
        } else if cells.contains(where: { $0.readByStock }) {
            reason = "provisional receipt without proof"
        } else if receiptAt == nil || receiptAt.map({ $0 >= decidedAt }) == true {
            reason = "receipt lost or under way when the push fell due"
        } else if cells.contains(where: { $0.receiptState == .background && $0.receiptAt == receiptAt }) {
            reason = "left the screen before the receipt came"
        } else if people[person].changedAt >= event.postedAt {
            reason = "the role changed before the receipt came"
        } else if cells.contains(where: { $0.isContradicted }) {
            reason = "the last word of a dead connection came after the new one's"
        } else {
            report.unexplained += 1
            violation("unexplained duplicate of \(describe(event)) for \(who): \(cells)")
            return
        }
        report.duplicates[reason, default: 0] += 1
    }

    private func describe(_ event: SimEvent) -> String {
        "\(event.eventName) \(event.name) (\(channels[event.channel].name), committed at \(event.committedAt))"
    }

    func violation(_ text: String) {
        report.violationCount += 1
        if report.violations.count < 10 { report.violations.append("\(now) ms: \(text)") }
    }
}
