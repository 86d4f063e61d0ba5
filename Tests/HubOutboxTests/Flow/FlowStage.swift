import HubCore
import HubDefinitions
import HubDelivery
import HubTesting

@testable import HubOutbox

/// A flow in a scripted world: each step is answered from plain values, on clocks that the test moves.
final class FlowStage {
    var flow: PushFlow
    var now: Moment
    var devices: [DeviceName: DeviceTarget] = [:]
    /// Lanes without room, and when they are to be asked again.
    var stopped: [PushProvider: Duration] = [:]
    var comebacks = Comebacks()
    var isStoreDown = false
    /// Pushes that have ended in the store, by nid.
    var ended: Set<String> = []
    /// Open pushes that the store gives when it is read again.
    var stored: [PushRecord] = []
    /// Pushes that a node tells of while the next lanes are asked.
    var toldAtAdmission: [PushRecord] = []
    /// The steps in their order, by name.
    private(set) var steps: [String] = []
    private(set) var sent: [PushFlow.Attempt] = []
    private(set) var unanswered: [PushFlow.Attempt] = []
    /// Records that were stored, without leases.
    private(set) var written: [PushRecord] = []
    private(set) var redirected: [Redirection] = []
    private(set) var tokenNotes: [PushFlow.TokenNote] = []

    init(users: [String] = ["u"], definitions: DefinitionSet = .empty) {
        let now = Moment(monotonic: 5_000, wall: ManualClock.start)
        self.now = now
        flow = PushFlow(definitions: definitions, at: now) { 0.5 }
        for user in users { device(user) }
    }

    /// Registers a device now.
    func device(_ user: String, id: String = "d", token: String? = nil, provider: PushProvider = .fcm) {
        devices[DeviceName(app: "1", user: user, id: id)] = DeviceTarget(
            platform: provider == .apns ? .ios : .android, provider: provider, token: token ?? "token-of-\(user)", form: .token,
            environment: .production, notifications: true, registeredAt: now.wall, refreshedAt: now.wall, lastAcceptedAt: nil)
    }

    func pass(milliseconds: Int64) {
        now.monotonic += milliseconds
        now.wall += milliseconds
    }

    func push(
        _ nid: String = "n", user: String = "u", policy: Policy = .critical, life: Int64 = 600_000, delay: Int64 = 0
    ) -> PushRecord {
        PushRecord(
            nid: nid, event: "event of \(nid)", app: "1", user: user, device: "d", state: .due, reason: "absent", dueAt: now.wall + delay,
            message: PushMessage(
                nid: nid, event: "event of \(nid)", kind: .alert, policy: policy, title: "t", body: "b", expiresAt: now.wall + life,
                committedAt: now.wall))
    }

    func enqueue(_ pushes: PushRecord...) {
        flow.enqueue(pushes, at: now)
        run()
    }

    /// Carries rounds out until nothing can go out.
    func run() {
        var step = flow.start(at: now)
        while let asked = step { step = answer(asked) }
    }

    /// Lets the gateways answer everything that they have.
    func answer(_ outcome: PushOutcome, keptBack: Int64? = nil) {
        let answers = unanswered.map { PushFlow.Answer($0, outcome, keptBack: keptBack) }
        unanswered = []
        var step = flow.answered(answers, at: now)
        while let asked = step { step = settle(asked) }
        run()
    }

    private func answer(_ step: PushFlow.Step) -> PushFlow.Step? {
        steps.append(Self.name(of: step))
        switch step {
        case .readChannels(let events): return flow.learned(channels: events.map { _ in "presence-quiz-1" }, at: now)
        case .readZones(let pushes): return flow.learned(zones: pushes.map { _ in nil }, at: now)
        case .askRooms(let routes):
            let rooms = routes.map { route in stopped[route.provider].map { PushRoom(count: 0, urgent: 0, again: $0) } ?? .unlimited }
            return flow.asked(rooms: rooms, at: now)
        case .askWaits(let pushes):
            var waits: [Int: Int64] = [:]
            for (place, push) in pushes.enumerated() { waits[place] = comebacks.wait(of: push, at: now) }
            return flow.asked(waits: waits, at: now)
        case .lookUp(let names): return flow.lookedUp(names.map { devices[$0] }, at: now)
        case .readDevices(let users): return flow.read(devices: all(of: users), at: now)
        case .redirect(let redirections, _):
            return flow.redirected(redirect(redirections), at: now)
        case .admit(let candidates):
            flow.enqueue(toldAtAdmission, at: now)
            toldAtAdmission = []
            return flow.admitted(candidates.map { stopped[$0.target.provider].map { .wait(again: $0) } ?? .go }, at: now)
        case .pause: return flow.paused(at: now)
        case .lease(let pushes): return flow.leased(isStoreDown ? nil : pushes.filter { !ended.contains($0.nid) }, at: now)
        case .hand(let handovers):
            sent += handovers.map(\.attempt)
            unanswered += handovers.map(\.attempt)
            return flow.handedOver(at: now)
        case .complete(let pushes): return flow.completed(store(pushes), at: now)
        case .write(let pushes): return flow.written(store(pushes) != nil, at: now)
        case .reload: return flow.reloaded(isStoreDown ? nil : stored, at: now)
        }
    }

    private func settle(_ step: PushFlow.Settling) -> PushFlow.Settling? {
        switch step {
        case .note(let notes):
            tokenNotes += notes
            for case .dead(let token, _, _, _) in notes {
                for (name, device) in devices where device.token == token { devices[name]?.token = nil }
            }
            return flow.noted(at: now)
        case .readDevices(let users): return flow.reread(devices: all(of: users), at: now)
        case .redirect(let redirections, _):
            return flow.followed(redirect(redirections), at: now)
        case .update(let pushes):
            flow.settled(store(pushes), at: now)
            return nil
        }
    }

    /// As the store does: a push that has ended meanwhile and was to be tried again is cancelled.
    private func store(_ pushes: [PushRecord]) -> [PushRecord]? {
        if isStoreDown { return nil }
        written += pushes
        return pushes.filter { $0.state == .retry && ended.contains($0.nid) }.map { push in
            var push = push
            (push.state, push.outcome) = (.cancelled, "receipt")
            return push
        }
    }

    /// As the store does, for people without other rows of the notification.
    private func redirect(_ redirections: [Redirection]) -> [RedirectionOutcome]? {
        if isStoreDown { return nil }
        redirected += redirections
        return redirections.map { redirection in
            switch redirection.ruling(beside: []) {
            case .goesOn(let successors): return .goesOn(successors.map { redirection.successor(on: $0, now: now.wall) })
            case .waits: return .waits
            case .ends(let state, let outcome, let successors):
                var push = redirection.delivery
                (push.state, push.outcome) = (state, outcome)
                written.append(push)
                return .ended(push, successors.map { redirection.successor(on: $0, now: now.wall) })
            }
        }
    }

    private func all(of users: [String: [String]]) -> [String: [String: [Device]]] {
        var found: [String: [String: [Device]]] = [:]
        for (name, target) in devices where users[name.app]?.contains(name.user) == true {
            let device = Device(
                app: name.app, user: name.user, id: name.id, platform: target.platform, provider: target.provider, token: target.token,
                environment: target.environment, notifications: true, registeredAt: target.registeredAt)
            found[name.app, default: [:]][name.user, default: []].append(device)
        }
        return found.mapValues { $0.mapValues { devices in devices.sorted { $0.registeredAt > $1.registeredAt } } }
    }

    /// Milliseconds until the flow is to be started again; nil: something has to come in first.
    func wait() -> Int64? { flow.wake(at: now)?.wait }

    func takeSteps() -> [String] {
        defer { steps = [] }
        return steps
    }

    private static func name(of step: PushFlow.Step) -> String {
        switch step {
        case .readChannels: "channels"
        case .readZones: "zones"
        case .askRooms: "rooms"
        case .askWaits: "waits"
        case .lookUp: "look up"
        case .readDevices: "devices"
        case .redirect: "redirect"
        case .admit: "admit"
        case .pause: "pause"
        case .lease: "lease"
        case .hand: "hand"
        case .complete: "complete"
        case .write: "write"
        case .reload: "reload"
        }
    }
}
