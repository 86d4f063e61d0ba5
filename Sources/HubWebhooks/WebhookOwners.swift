internal import HubCore
internal import HubDelivery
internal import Logging

/// Whose webhooks this node sends, beside other nodes.
struct WebhookOwners {
    enum Part: Equatable {
        case none
        /// The store is asked what the former owner left.
        case coming
        case own
    }

    /// Any thread.
    let owns: @Sendable (_ app: String) -> Bool
    /// How long a new owner lets stored batches wait: the former one may have an attempt under way, and stores its end.
    let attemptsEnd: Duration
    /// Keys are indexes of apps.
    var parts: [Int: Part] = [:]
    /// Grows with every change of an app's part.
    private(set) var turns: [Int: Int] = [:]
    var isLeaving = false
    /// Rows of batches that were in flight when their app went to another node, by the lane's index and the batch's number.
    private var orphans: [[Int]: Int64] = [:]

    init(owns: @escaping @Sendable (_ app: String) -> Bool, attemptsEnd: Duration) {
        self.owns = owns
        self.attemptsEnd = attemptsEnd
    }

    mutating func set(_ app: Int, _ part: Part) {
        parts[app] = part
        turns[app, default: 0] += 1
    }

    mutating func addOrphan(lane: Int, _ number: Int, row: Int64) { orphans[[lane, number]] = row }

    mutating func takeOrphan(lane: Int, _ number: Int) -> Int64? { orphans.removeValue(forKey: [lane, number]) }
}

extension WebhookDispatch {
    /// Begins with the apps that have become this node's, and lets the others go.
    func followOwners() {
        guard let owners else { return }
        for (app, own) in lanesOfApp {
            let isOwn = !owners.isLeaving && owners.owns(lanes[own[0]].endpoint.appID)
            let part = owners.parts[app] ?? .none
            if isOwn, part == .none {
                self.owners?.set(app, .coming)
                let turn = self.owners?.turns[app]
                Task { await self.takeOver(app, turn) }
            } else if !isOwn, part != .none {
                letGo(app)
            }
        }
    }

    /// Goes on where the former owner ended, as soon as the store tells where.
    private func takeOver(_ app: Int, _ turn: Int?) async {
        let id = lanes[lanesOfApp[app]?[0] ?? 0].endpoint.appID
        while owners?.turns[app] == turn {
            do {
                // This node may have lost the app a moment ago, and still be storing what it was told until then.
                try await endWriting()
                var batches = try await openBatches { $0 == id }
                if !batches.isEmpty {
                    try await Task.sleep(for: owners?.attemptsEnd ?? .zero)
                    batches = try await openBatches { $0 == id }
                }
                let mark = try await store.webhookMark(app: id)
                guard owners?.turns[app] == turn else { return }
                owners?.set(app, .own)
                takeUp(batches.filter { !ended.contains($0.row) })
                let now = time.monotonicNanoseconds
                for fact in apps[app]?.begin(after: mark, now: now) ?? [] { tell(fact, now: now) }
                return advance()
            } catch {
                logger.info("webhooks of the former owner could not be read; trying again", metadata: ["error": "\(error)"])
                do { try await Task.sleep(for: .nanoseconds(WebhookLimits.writePauseNanoseconds)) } catch { return }
            }
        }
    }

    private func letGo(_ app: Int) {
        owners?.set(app, .none)
        if apps[app]?.isOwn == true { apps[app]?.end() }
        for lane in lanesOfApp[app] ?? [] {
            if let (number, row) = lanes[lane].leave() { owners?.addOrphan(lane: lane, number, row: row) }
        }
    }

    /// Stores what was told, waits for the attempts under way, for a second at most, and leaves all apps to the other nodes.
    func leave() async {
        guard owners != nil else { return }
        for app in lanesOfApp.keys { flush(app) }
        advance()
        let end = time.monotonicNanoseconds + WebhookLimits.leaveNanoseconds
        while time.monotonicNanoseconds < end, lanes.contains(where: { !$0.queue.isEmpty }) { await pause() }
        owners?.isLeaving = true
        followOwners()
    }
}
