import HubDefinitions
import HubDelivery
import Testing

private func device(
    _ id: String, token: String? = "same", notifications: Bool = true, registeredAt: Int64 = 0, provider: PushProvider = .fcm
) -> Device {
    Device(
        app: "1", user: "u", id: id, platform: .android, provider: provider, token: token == "same" ? "token-\(id)" : token,
        environment: .production, notifications: notifications, registeredAt: registeredAt)
}

private func decide(
    _ policy: Policy, _ states: [String?: DeviceState] = [:], _ devices: [Device] = [], scope: SuppressScope = .participant,
    remaining: Int64 = 600_000, graceLeft: Int64 = 15_000, isActor: Bool = false
) -> Decision {
    .make(
        .init(
            policy: policy, expiresAt: 1000 + remaining, now: 1000, isActor: isActor, scope: scope, devices: devices,
            reach: { device in (states[device] ?? states[nil] ?? .absent, graceLeft) }))
}

extension Decision {
    /// `device reason` of each push that is due at once.
    fileprivate var pushed: [String] { pushes.map { "\($0.device) \($0.reason)" } }
    /// `device seconds reason` of each awaited receipt; `*` stands for all devices together.
    fileprivate var waiting: [String] { awaited.map { "\($0.device ?? "*") \($0.wait / .seconds(1)) \($0.reason)" } }
}

@Suite("Decision")
struct DecisionTests {
    /// The decision table, in seconds; nil for no push.
    static let table: [(DeviceState, Policy, Double?)] = [
        (.live, .realtimeOnly, nil), (.quiet, .realtimeOnly, nil), (.background, .realtimeOnly, nil),
        (.backgroundCapable, .realtimeOnly, nil),
        (.grace, .realtimeOnly, nil), (.serverGrace, .realtimeOnly, nil), (.absent, .realtimeOnly, nil),
        (.live, .sync, 10), (.quiet, .sync, 6), (.background, .sync, 3), (.backgroundCapable, .sync, 10), (.grace, .sync, 12),
        (.serverGrace, .sync, 12), (.absent, .sync, 0),
        (.live, .notify, 5), (.quiet, .notify, 3), (.background, .notify, 0), (.backgroundCapable, .notify, 3), (.grace, .notify, 10),
        (.serverGrace, .notify, 12), (.absent, .notify, 0),
        (.live, .critical, 2), (.quiet, .critical, 1), (.background, .critical, 0), (.backgroundCapable, .critical, 1),
        (.grace, .critical, 2), (.serverGrace, .critical, 2), (.absent, .critical, 0),
        (.live, .both, 0), (.quiet, .both, 0), (.background, .both, 0), (.backgroundCapable, .both, 0), (.grace, .both, 0),
        (.serverGrace, .both, 0), (.absent, .both, 0),
        (.live, .pushOnly, 0), (.quiet, .pushOnly, 0), (.background, .pushOnly, 0), (.backgroundCapable, .pushOnly, 0),
        (.grace, .pushOnly, 0), (.serverGrace, .pushOnly, 0), (.absent, .pushOnly, 0),
    ]

    @Test("the table has every cell")
    func complete() {
        #expect(Set(Self.table.map { "\($0.0) \($0.1)" }).count == DeviceState.allCases.count * Policy.allCases.count)
    }

    @Test("every cell of the table with a reachable device, with 12 s of grace left", arguments: table)
    func reachable(state: DeviceState, policy: Policy, seconds: Double?) {
        for scope in SuppressScope.allCases {
            let decision = decide(policy, [nil: state], [device("a")], scope: scope, graceLeft: 12_000)
            let name = policy == .both || policy == .pushOnly ? policy.rawValue : state.rawValue
            #expect(decision.end == nil)
            guard let seconds else {
                #expect(decision.pushes.isEmpty && decision.awaited.isEmpty && decision.reason == "realtime_only")
                continue
            }
            #expect(decision.reason == name)
            if seconds == 0 {
                #expect(decision.pushed == ["a \(name)"] && decision.awaited.isEmpty)
            } else {
                #expect(decision.waiting == ["\(scope == .device ? "a" : "*") \(seconds) \(name)"] && decision.pushes.isEmpty)
            }
        }
    }

    @Test("a short rest of grace shortens the wait, except for critical")
    func graceLeft() {
        #expect(decide(.notify, [nil: .grace], [device("a")], graceLeft: 4000).awaited.map(\.wait) == [.seconds(4)])
        #expect(decide(.sync, [nil: .grace], [device("a")], graceLeft: 4000).awaited.map(\.wait) == [.seconds(4)])
        #expect(decide(.critical, [nil: .grace], [device("a")], graceLeft: 500).awaited.map(\.wait) == [.seconds(2)])
        #expect(decide(.notify, [nil: .serverGrace], [device("a")], graceLeft: 29_000).awaited.map(\.wait) == [.seconds(29)])
    }

    static let unreachable: [(String, [Device])] = [
        ("no device", []), ("no token", [device("a", token: nil)]), ("permission denied", [device("a", notifications: false)]),
        ("no token", [device("a", token: nil, notifications: false)]),
        ("permission denied", [device("a", token: nil), device("b", notifications: false)]),
    ]

    @Test("every cell of the table without a reachable device", arguments: table)
    func unreachable(state: DeviceState, policy: Policy, seconds: Double?) {
        for (reason, devices) in Self.unreachable {
            for scope in SuppressScope.allCases {
                let decision = decide(policy, [nil: state], devices, scope: scope, graceLeft: 12_000)
                #expect(decision.pushes.isEmpty)
                guard let seconds else {
                    #expect(decision.awaited.isEmpty && decision.end == nil)
                    continue
                }
                let isLooking = [.live, .quiet, .backgroundCapable].contains(state) && policy != .pushOnly
                if seconds > 0 {
                    // Whether the participants can be told at all is decided when no receipt has come.
                    #expect(decision.awaited.count == 1 && decision.awaited[0].device == nil && decision.end == nil)
                } else if isLooking {
                    #expect(decision.end == nil && decision.awaited.isEmpty)
                } else {
                    #expect(decision.end == .undeliverable && decision.reason == reason && decision.awaited.isEmpty)
                    #expect(RecipientNote.Choice.unreachable(devices).reason == reason, "the note tells it in the same words")
                }
            }
        }
    }

    @Test("actors and expired events are told on no surface", arguments: Policy.allCases)
    func neither(policy: Policy) {
        func isNothing(_ decision: Decision, _ reason: String, _ end: PushState?) -> Bool {
            decision.pushes.isEmpty && decision.awaited.isEmpty && decision.reason == reason && decision.end == end
        }
        for state in DeviceState.allCases {
            func make(remaining: Int64 = 600_000, isActor: Bool = false) -> Decision {
                decide(policy, [nil: state], [device("a")], remaining: remaining, isActor: isActor)
            }
            if policy == .realtimeOnly {
                #expect(isNothing(make(isActor: true), "realtime_only", nil) && isNothing(make(remaining: 0), "realtime_only", nil))
                continue
            }
            #expect(isNothing(make(isActor: true), "actor", .cancelled))
            #expect(isNothing(make(remaining: 0), "expired", .expired) && isNothing(make(remaining: -5), "expired", .expired))
            #expect((make(remaining: 2999).end == .expired) == (policy != .sync))
            #expect(make(remaining: 3000).end == nil)
        }
    }

    @Test("a wait ends while the push is still worth something")
    func shortLife() {
        #expect(decide(.notify, [nil: .live], [device("a")], remaining: 5000).awaited.map(\.wait) == [.seconds(1)])
        #expect(decide(.sync, [nil: .live], [device("a")], scope: .device, remaining: 10_000).awaited.map(\.wait) == [.seconds(6)])
        #expect(decide(.critical, [nil: .live], [device("a")], remaining: 6000).awaited.map(\.wait) == [.seconds(2)])
        #expect(decide(.notify, [nil: .live], [device("a")], remaining: 3500).pushes.map(\.device) == ["a"])
    }

    @Test("with scope participant the best device decides for all, with scope device each for itself")
    func scopes() {
        let devices = [device("phone", registeredAt: 2), device("tablet", registeredAt: 1), device("watch", registeredAt: 3)]
        let states: [String?: DeviceState] = [nil: .live, "phone": .live, "tablet": .background, "watch": .absent]
        #expect(decide(.notify, states, devices).waiting == ["* 5.0 live"])
        #expect(decide(.notify, states, devices).pushes.isEmpty)
        let own = decide(.notify, states, devices, scope: .device)
        #expect(own.waiting == ["phone 5.0 live"])
        #expect(own.pushed == ["watch absent", "tablet bg"])
        #expect(own.reason == "live")
        #expect(decide(.both, states, devices).pushes.map(\.device) == ["watch", "phone", "tablet"])
    }

    @Test("pushes go to the newest registrations, each token once, at most 25")
    func order() {
        let many = (0..<40).map { device("d\($0)", registeredAt: Int64($0)) }
        #expect(decide(.notify, [:], many.shuffled()).pushes.map(\.device) == (15..<40).reversed().map { "d\($0)" })
        let twins = [
            device("old", token: "t", registeredAt: 1), device("new", token: "t", registeredAt: 2),
            device("other", token: "t", registeredAt: 0, provider: .apns),
            device("deaf", token: "t", notifications: false, registeredAt: 9),
        ]
        #expect(decide(.notify, [:], twins).pushes.map(\.device) == ["new", "other"])
        // One installation under two ids: while one device is live, the token is awaited and not pushed to.
        let own = decide(.notify, ["old": .live], twins, scope: .device)
        #expect(own.pushes.map(\.device) == ["other"] && own.awaited.map(\.device) == ["old"])
        let ties = [device("b"), device("a"), device("c")]
        #expect(decide(.notify, [:], ties).pushes.map(\.device) == ["a", "b", "c"])
    }
}
