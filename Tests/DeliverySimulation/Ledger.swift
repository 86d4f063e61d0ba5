import HubCore
import HubDelivery

/// What really happened of one event on one device: known to nobody in the hub.
struct Cell {
    /// A person saw it on the socket's surface.
    var seenAt: Int64?
    /// The program behind the socket read it, seen or not.
    var readAt: Int64?
    /// It was read by a client that says nothing of its state, or nothing that could be ordered with its receipts.
    var readByStock = false
    /// In which life a receipt came to a loop that settles for certain, whether or not the delivery task has looked at it.
    var arrivedInLife: Int?
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
    let number: UInt64
    let name: String
    let channel: Int
    let policy: Policy
    let lifetime: Int64
    let actor: Int?
    var cells: [Cell]

    // The store's part.
    var committedAt: Int64 = 0
    var isCommitted = false
    /// In which life of the server it was committed.
    var life = 0
    /// Per recipient.
    var confirmed: [Bool]
    var settled: [Bool]
    var isOpen = false

    /// Per loop, in the life in which it was committed.
    var attendedUpTo: [UInt64] = []
    var cursors: [UInt64?] = []

    /// Per recipient: waited for when it was committed.
    var awaited: [Bool]

    init(index: Int, number: UInt64, channel: Int, policy: Policy, lifetime: Int64, actor: Int?, recipients: Int, devices: Int) {
        self.index = index
        self.number = number
        name = "e\(number)"
        self.channel = channel
        self.policy = policy
        self.lifetime = lifetime
        self.actor = actor
        cells = Array(repeating: Cell(), count: devices)
        confirmed = Array(repeating: false, count: recipients)
        settled = confirmed
        awaited = confirmed
    }

    var expiresAt: Int64 { committedAt + lifetime }
}

extension Simulation {
    /// The event's life is over: was everybody told, and nobody twice without a reason?
    func judge(_ event: SimEvent) {
        let channel = channels[event.channel]
        for (place, person) in channel.people.enumerated() {
            report.pairs += 1
            guard event.policy != .realtimeOnly, event.actor != person else { continue }
            let range = people[person].devices
            let cells = range.map { event.cells[$0 - channel.firstDevice] }
            if cells.contains(where: { $0.seenAt != nil }) { report.seenOnSocket += 1 }
            if cells.contains(where: { $0.pushShownAt != nil }) { report.pushed += 1 }
            if channel.scope == .device {
                for (offset, cell) in cells.enumerated() where devices[range.lowerBound + offset].hasToken {
                    judge(event, [cell], "\(people[person].name)/\(devices[range.lowerBound + offset].name)", place)
                }
                if !range.contains(where: { devices[$0].hasToken }) { judgeUnreachable(event, cells) }
            } else if range.contains(where: { devices[$0].hasToken }) {
                judge(event, cells, people[person].name, place)
            } else {
                judgeUnreachable(event, cells)
            }
        }
        event.cells = []
    }

    private func judgeUnreachable(_ event: SimEvent, _ cells: [Cell]) {
        if !cells.contains(where: { $0.seenAt != nil }) { report.excused["no device that a push reaches, and not there", default: 0] += 1 }
    }

    private func judge(_ event: SimEvent, _ cells: [Cell], _ who: String, _ place: Int) {
        let seenAt = cells.compactMap(\.seenAt).min()
        let shownAt = cells.compactMap(\.pushShownAt).min()
        switch (seenAt, shownAt) {
        case (nil, nil): judgeLoss(event, cells, who)
        case (let seenAt?, _?): judgeDuplicate(event, cells, who, seenAt: seenAt)
        case (nil, _?):
            let isOneLife = cells.allSatisfy { $0.pushDecidedAt == nil || $0.pushLife == event.life }
            if event.awaited[place], isOneLife, let decided = cells.compactMap(\.pushDecidedAt).min() {
                let way = cells.contains(where: \.readByStock) ? ", after a provisional receipt" : ""
                report.rescues[event.policy.rawValue + way, default: []].append(decided - event.committedAt)
            }
        default: break
        }
    }

    private func judgeLoss(_ event: SimEvent, _ cells: [Cell], _ who: String) {
        let lastCall = event.expiresAt - Decision.lastCallMilliseconds - 1000
        if let reason = cells.compactMap(\.dropped).first {
            report.excused["push dropped: \(reason)", default: 0] += 1
        } else if cells.contains(where: { $0.ranUnseen }) {
            report.excused["a stock client ran on unseen and answered", default: 0] += 1
        } else if downtimes.contains(where: { $0.from < event.expiresAt && $0.until > lastCall }) {
            report.excused["expired while the server was down", default: 0] += 1
        } else if cells.contains(where: { $0.pushDecidedAt.map { $0 < event.expiresAt } == true }) {
            // Decided in time, and the gateway's answer or the crash in between took the rest of its short life.
            report.excused["expired on the way to the gateway", default: 0] += 1
        } else {
            report.lost += 1
            violation("lost \(describe(event)) for \(who): \(cells)")
        }
    }

    private func judgeDuplicate(_ event: SimEvent, _ cells: [Cell], _ who: String, seenAt: Int64) {
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
        "\(event.name) (\(event.policy.rawValue), scope \(channels[event.channel].scope.rawValue), committed at \(event.committedAt))"
    }

    func violation(_ text: String) {
        report.violationCount += 1
        if report.violations.count < 10 { report.violations.append("\(now) ms: \(text)") }
    }
}
