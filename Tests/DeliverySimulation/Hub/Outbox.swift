import HubCore
import HubDelivery
import HubOutbox
import HubTesting

/// The outbox of the simulated hub: the `PushFlow` that ships, with a store, lanes and a gateway that go wrong.
extension Simulation {
    /// Between two stops of the lanes at most, and how long one lasts, in milliseconds.
    private static let stopEvery: Int64 = 30_000
    private static let stopLength: (least: Int64, most: Int64) = (200, 8_000)
    private static let retryAfter: Int64 = 20_000

    func newFlow() -> PushFlow { PushFlow(definitions: definitions, at: moment) { 0.5 } }

    func enqueue(_ records: [PushRecord]) {
        if records.isEmpty { return }
        hub.flow.enqueue(records, at: moment)
        runFlow()
    }

    /// Carries rounds out until the store has to be waited for, or nothing can go out.
    func runFlow() {
        guard !hub.isFlowing else { return }
        hub.isFlowing = true
        go(hub.flow.start(at: moment))
    }

    private func go(_ first: PushFlow.Step?) {
        var step = first
        while let asked = step {
            if case .lease(let pushes) = asked {
                hub.leasing = pushes
                return schedule(between(1, 8), .leased(life: life))
            }
            step = answer(asked)
        }
        hub.isFlowing = false
        planFlow()
    }

    func planFlow() {
        guard let wake = hub.flow.wake(at: moment) else { return }
        schedule(max(1, wake.wait), .flow(life: life))
    }

    func leased() {
        let pushes = hub.leasing
        hub.leasing = []
        if chance(1) {
            report.failedCommits += 1
            return go(hub.flow.leased(nil, at: moment))
        }
        let open = pushes.filter { push in rowIndex[RowKey(push)].map { !rows[$0].isDone } ?? false }
        for push in open { if let row = rowIndex[RowKey(push)] { rows[row].record = push } }
        go(hub.flow.leased(open, at: moment))
    }

    private func answer(_ step: PushFlow.Step) -> PushFlow.Step? {
        switch step {
        case .readChannels(let names):
            return hub.flow.learned(channels: names.map { eventIndex[$0].map { channels[events[$0].channel].name } }, at: moment)
        case .readZones(let pushes): return hub.flow.learned(zones: pushes.map { _ in nil }, at: moment)
        case .askRooms(let routes):
            let room =
                laneStop > now && settings.broken != .stoppedLaneAdmits
                ? PushRoom(count: 0, urgent: 0, again: .milliseconds(laneStop - now)) : .unlimited
            return hub.flow.asked(rooms: routes.map { _ in room }, at: moment)
        case .askWaits(let pushes):
            var waits: [Int: Int64] = [:]
            for (place, push) in pushes.enumerated() { waits[place] = hub.comebacks.wait(of: push, at: moment) }
            return hub.flow.asked(waits: waits, at: moment)
        case .lookUp(let names): return hub.flow.lookedUp(names.map { record(of: $0.id).map(DeviceTarget.init) }, at: moment)
        case .readDevices(let users): return hub.flow.read(devices: registered(users), at: moment)
        case .redirect(let redirections, _): return hub.flow.redirected(redirections.map(redirect), at: moment)
        case .admit(let candidates):
            let isStopped = laneStop > now && settings.broken != .stoppedLaneAdmits
            let admission = isStopped ? PushAdmission.wait(again: .milliseconds(laneStop - now)) : .go
            return hub.flow.admitted(candidates.map { _ in admission }, at: moment)
        case .pause: return hub.flow.paused(at: moment)
        case .lease(let pushes): return hub.flow.leased(pushes, at: moment)
        case .hand(let handovers):
            for handover in handovers { hand(handover.attempt) }
            return hub.flow.handedOver(at: moment)
        case .complete(let pushes): return hub.flow.completed(update(pushes), at: moment)
        case .write(let pushes): return hub.flow.written(update(pushes) != nil, at: moment)
        case .reload:
            let open = openRows.sorted().map { rows[$0].record }
            return hub.flow.reloaded(open, at: moment)
        }
    }

    private func registered(_ users: [String: [String]]) -> [String: [String: [Device]]] {
        users.mapValues { names in
            Dictionary(
                names.map { name in (name, personIndex[name].map { people[$0].record } ?? []) }, uniquingKeysWith: { first, _ in first })
        }
    }

    private func record(of device: String) -> Device? {
        let index = deviceIndex(device)
        guard devices.indices.contains(index) else { return nil }
        let person = people[devices[index].person]
        return person.record.first { $0.id == device }
    }

    // MARK: The gateway

    /// A push on its way: the gateway is not part of the process, and shows what it took, whatever becomes of the answer.
    private func hand(_ attempt: PushFlow.Attempt) {
        guard let row = rowIndex[RowKey(attempt.push)] else { return }
        if now < rows[row].notBefore, rows[row].sentInLife == life {
            violation("\(attempt.push.event) is handed over before its Retry-After")
        }
        // It may have stopped while the lease was written.
        if laneStop > now, stops.last.map({ $0.from < now - 10 }) == true {
            violation("\(attempt.push.event) is handed to a lane that stands still")
        }
        if let told = deadSince[attempt.target.token], told < now - 1_000 {
            violation("\(attempt.push.event) goes to a token that was told dead")
        }
        if rows[row].isWithdrawn { violation("\(attempt.push.event) is handed over after its receipt was stored") }
        rows[row].sentInLife = life
        let way = between(20, 300)
        let outcome: PushOutcome
        if devices[rows[row].device].isUninstalled {
            outcome = .dead(reason: "UNREGISTERED", since: nil, isCertain: true)
            deadSince[attempt.target.token] = deadSince[attempt.target.token] ?? now + 2 * way
        } else if chance(settings.broken == .retryWithdrawn ? 30 : 2) {
            report.retries += 1
            outcome = .retry(after: nil, reason: "http 503")
        } else if chance(1) {
            report.retries += 1
            outcome = .retry(after: settings.broken == .ignoreRetryAfter ? nil : .milliseconds(Self.retryAfter), reason: "http 429")
        } else {
            outcome = .accepted(providerID: "m", environment: nil)
            schedule(way, .shown(row: row))
        }
        schedule(way + between(1, 100), .gatewayAnswered(life: life, PushFlow.Answer(attempt, outcome)))
    }

    func gatewayAnswered(_ answer: PushFlow.Answer) {
        if case .retry(_, "http 429") = answer.outcome, let row = rowIndex[RowKey(answer.attempt.push)] {
            rows[row].notBefore = now + Self.retryAfter
        }
        hub.answers.append(answer)
        guard hub.answers.count == 1 else { return }
        schedule(between(1, 20), .settle(life: life))
    }

    func settle() {
        let answers = hub.answers
        hub.answers = []
        var step = hub.flow.answered(answers, at: moment)
        while let asked = step {
            switch asked {
            case .note(let notes):
                for case .dead(let token, _, _, _) in notes where settings.broken != .keepDeadTokens { removeToken(token) }
                step = hub.flow.noted(at: moment)
            case .readDevices(let users): step = hub.flow.reread(devices: registered(users), at: moment)
            case .redirect(let redirections, _): step = hub.flow.followed(redirections.map(redirect), at: moment)
            case .update(let pushes):
                hub.flow.settled(update(pushes), at: moment)
                step = nil
            }
        }
        runFlow()
    }

    private func removeToken(_ token: String) {
        for person in people.indices {
            for index in people[person].record.indices where people[person].record[index].token == token {
                people[person].record[index].token = nil
            }
        }
    }

    // MARK: The store

    /// Writes what became of pushes; those that a receipt came to meanwhile and that were to be tried again end as cancelled.
    private func update(_ pushes: [PushRecord]) -> [PushRecord]? {
        var withdrawn: [PushRecord] = []
        for push in pushes {
            guard let row = rowIndex[RowKey(push)], !rows[row].isDone else { continue }
            var push = push
            if push.state == .retry, rows[row].isWithdrawn, settings.broken != .retryWithdrawn {
                (push.state, push.outcome) = (.cancelled, "receipt")
                withdrawn.append(push)
            }
            rows[row].record = push
            guard !PushState.open.contains(push.state) else { continue }
            end(row, push)
        }
        return withdrawn
    }

    private func end(_ row: Int, _ push: PushRecord) {
        rows[row].isDone = true
        openRows.remove(row)
        let event = events[rows[row].event]
        guard !event.cells.isEmpty, push.state != .accepted, push.outcome != "receipt" else { return }
        // A push that waited for nothing has no reason to expire.
        let isWaiting = push.attempts > 0 || stops.contains { $0.from < event.expiresAt && $0.until > event.expiresAt - 10_000 }
        if push.state == .expired, !isWaiting, !channels[event.channel].kind.isLimited { return }
        event.cells[rows[row].device - channels[event.channel].firstDevice].dropped = "\(push.state.rawValue): \(push.outcome ?? "")"
    }

    /// Ends a push whose device is gone, and makes others in its place.
    private func redirect(_ redirection: Redirection) -> RedirectionOutcome {
        let push = redirection.delivery
        guard let row = rowIndex[RowKey(push)], !rows[row].isDone, let person = personIndex[push.user] else { return .gone }
        let event = events[rows[row].event]
        let others = people[person].devices.filter { devices[$0].name != push.device }.compactMap { device -> RedirectionRow? in
            let name = devices[device].name
            guard let other = rowIndex[RowKey(event: push.event, user: push.user, device: name)] else { return nil }
            return RedirectionRow(
                device: name, isOpen: !rows[other].isDone, isLeased: !rows[other].isDone && rows[other].record.state == .leased,
                accepted: rows[other].record.state == .accepted ? [TokenMark("t-\(name)", of: .fcm)] : [])
        }
        func successors(_ names: [String]) -> [PushRecord] {
            names.compactMap { name in
                let successor = redirection.successor(on: name, now: wall)
                return insert(successor, of: event) == nil ? nil : successor
            }
        }
        switch redirection.ruling(beside: others) {
        case .goesOn(let names): return .goesOn(successors(names))
        case .waits: return .waits
        case .ends(let state, let outcome, let names):
            var ended = push
            (ended.state, ended.outcome) = (state, outcome)
            rows[row].record = ended
            end(row, ended)
            return .ended(ended, successors(names))
        }
    }

    // MARK: Lanes

    func stopLanes() {
        if !isEnding { schedule(between(0, 2 * Self.stopEvery), .stopLanes) }
        laneStop = now + between(Self.stopLength.least, Self.stopLength.most)
        stops.append((now, laneStop))
        count("lane stops")
    }
}
