import HubDelivery
import Testing

private func device(
    _ id: String, token: String? = "same", notifications: Bool = true, registeredAt: Int64 = 0, provider: PushProvider = .fcm
) -> Device {
    Device(
        app: "1", user: "u", id: id, platform: .android, provider: provider, token: token == "same" ? "token-\(id)" : token,
        environment: .production, notifications: notifications, registeredAt: registeredAt)
}

private func attachment(_ device: String?, _ state: AppState, subscribed: Bool = true) -> KnownAttachment {
    KnownAttachment(device: device, state: state, isSubscribed: subscribed)
}

private func decide(
    _ policy: Policy, _ attachments: [KnownAttachment] = [], _ devices: [Device] = [], scope: SuppressScope = .participant,
    remaining: Int64 = 600_000, isActor: Bool = false, isInAudience: Bool = true
) -> Decision {
    .make(
        .init(
            policy: policy, expiresAt: 1000 + remaining, now: 1000, isActor: isActor, isInAudience: isInAudience, scope: scope,
            attachments: attachments, devices: devices))
}

@Suite("Decision")
struct DecisionTests {
    enum Presence: String, CaseIterable {
        case live, liveUnknownState, liveUnknownDevice, bg, bgUnknownDevice, notSubscribed, absent
        var attachments: [KnownAttachment] {
            switch self {
            case .live: [attachment("a", .foreground)]
            case .liveUnknownState: [attachment("a", .unknown)]
            case .liveUnknownDevice: [attachment(nil, .foreground)]
            case .bg: [attachment("a", .background)]
            case .bgUnknownDevice: [attachment(nil, .background)]
            case .notSubscribed: [attachment("a", .foreground, subscribed: false)]
            case .absent: []
            }
        }
        var isLive: Bool { rawValue.hasPrefix("live") }
        var isSubscribed: Bool { self != .absent && self != .notSubscribed }
        var reason: String {
            switch self {
            case .bg, .bgUnknownDevice: "bg"
            case .notSubscribed: "not subscribed"
            default: isLive ? "live" : "absent"
            }
        }
    }

    static let cells = Policy.allCases.flatMap { policy in Presence.allCases.map { (policy, $0) } }

    @Test("every cell of the table with one reachable device", arguments: cells)
    func reachable(policy: Policy, presence: Presence) {
        for scope in SuppressScope.allCases {
            let decision = decide(policy, presence.attachments, [device("a")], scope: scope)
            #expect(decision.writesSocket == (presence.isSubscribed && policy != .pushOnly))
            switch policy {
            case .realtimeOnly:
                #expect(decision.pushes.isEmpty && decision.reason == "realtime_only")
                #expect(decision.surface == (presence.isSubscribed ? .socket : .none))
                #expect(decision.state == (presence.isSubscribed ? .socket : nil))
            case .sync, .notify, .critical:
                #expect(decision.pushes.map(\.device) == (presence.isLive ? [] : ["a"]))
                #expect(decision.surface == (presence.isLive ? .socket : .push))
                #expect(decision.state == (presence.isLive ? .socket : .due))
                #expect(decision.reason == presence.reason)
                #expect(decision.pushes.allSatisfy { $0.reason == presence.reason && $0.wait == .zero })
            case .both:
                #expect(decision.pushes.map(\.device) == ["a"] && decision.state == .due && decision.reason == "both")
                #expect(decision.surface == (presence.isLive ? .both : .push))
            case .pushOnly:
                #expect(decision.pushes.map(\.device) == ["a"] && decision.state == .due && decision.reason == "push_only")
                #expect(decision.surface == .push)
            }
        }
    }

    static let unreachable: [(String, [Device])] = [
        ("no device", []), ("no token", [device("a", token: nil)]), ("permission denied", [device("a", notifications: false)]),
        ("no token", [device("a", token: nil, notifications: false)]),
        ("permission denied", [device("a", token: nil), device("b", notifications: false)]),
    ]

    @Test("every cell of the table without a reachable device", arguments: cells)
    func unreachable(policy: Policy, presence: Presence) {
        for (reason, devices) in Self.unreachable {
            let decision = decide(policy, presence.attachments, devices)
            #expect(decision.pushes.isEmpty)
            #expect(decision.writesSocket == (presence.isSubscribed && policy != .pushOnly))
            if policy == .realtimeOnly { continue }
            if presence.isLive && policy != .pushOnly {
                #expect(decision.state == .socket && decision.reason == "live" && decision.surface == .socket)
            } else {
                #expect(decision.state == .undeliverable && decision.reason == reason)
            }
        }
    }

    @Test("actors, others' events and expired events are told on no surface", arguments: Policy.allCases)
    func neither(policy: Policy) {
        let (attached, devices) = ([attachment("a", .background)], [device("a")])
        func isNothing(_ decision: Decision, _ reason: String, _ state: DeliveryState?) -> Bool {
            decision.surface == .none && !decision.writesSocket && decision.pushes.isEmpty && decision.reason == reason
                && decision.state == state
        }
        #expect(isNothing(decide(policy, attached, devices, isActor: true), "actor", .cancelled))
        #expect(isNothing(decide(policy, attached, devices, isInAudience: false), "role", nil))
        #expect(isNothing(decide(policy, attached, devices, isActor: true, isInAudience: false), "role", nil))
        #expect(isNothing(decide(policy, attached, devices, remaining: 0), "expired", .expired))
        #expect(isNothing(decide(policy, attached, devices, remaining: -5), "expired", .expired))
        let isAlert = policy != .realtimeOnly && policy != .sync
        #expect((decide(policy, attached, devices, remaining: 2999).reason == "expired") == isAlert)
        #expect(decide(policy, attached, devices, remaining: 3000).reason != "expired")
    }

    @Test("with scope participant one live device keeps pushes from all others, with scope device only from itself")
    func scopes() {
        let devices = [device("phone", registeredAt: 2), device("tablet", registeredAt: 1), device("watch", registeredAt: 3)]
        let attached = [attachment("phone", .foreground), attachment("tablet", .background)]
        #expect(decide(.notify, attached, devices).pushes.isEmpty)
        let own = decide(.notify, attached, devices, scope: .device)
        #expect(own.pushes.map(\.device) == ["watch", "tablet"] && own.pushes.map(\.reason) == ["absent", "bg"])
        #expect(own.surface == .both && own.writesSocket && own.state == .due && own.reason == "live")
        // A live socket of an unknown device could be any of them.
        #expect(decide(.notify, [attachment(nil, .unknown)], devices, scope: .device).pushes.isEmpty)
        // A live device that is not registered for pushes still counts for the participant.
        #expect(decide(.notify, [attachment("desktop", .unknown)], devices).state == .socket)
        #expect(decide(.notify, [attachment("desktop", .unknown)], devices, scope: .device).pushes.count == 3)
    }

    @Test("one of two sockets of a device in the foreground is enough")
    func twoSockets() {
        let attached = [attachment("a", .background), attachment("a", .foreground)]
        #expect(decide(.critical, attached, [device("a")], scope: .device).state == .socket)
        #expect(decide(.critical, attached, [device("a")]).state == .socket)
    }

    @Test("pushes go to the newest registrations, each token once, at most 25")
    func order() {
        let many = (0..<40).map { device("d\($0)", registeredAt: Int64($0)) }
        #expect(decide(.notify, [], many.shuffled()).pushes.map(\.device) == (15..<40).reversed().map { "d\($0)" })
        let twins = [
            device("old", token: "t", registeredAt: 1), device("new", token: "t", registeredAt: 2),
            device("other", token: "t", registeredAt: 0, provider: .apns),
            device("deaf", token: "t", notifications: false, registeredAt: 9),
        ]
        #expect(decide(.notify, [], twins).pushes.map(\.device) == ["new", "other"])
        // The same installation under two ids: while one is live, its token gets nothing.
        #expect(decide(.notify, [attachment("old", .foreground)], twins, scope: .device).pushes.map(\.device) == ["other"])
        let ties = [device("b"), device("a"), device("c")]
        #expect(decide(.notify, [], ties).pushes.map(\.device) == ["a", "b", "c"])
    }
}
