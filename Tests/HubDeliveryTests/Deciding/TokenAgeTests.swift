import HubDefinitions
import HubDelivery
import Testing

@Suite("Age of tokens")
struct TokenAgeTests {
    private static let day: Int64 = 86_400_000
    private let now: Int64 = 1_000 * TokenAgeTests.day

    private func device(refreshed days: Int64, accepted: Int64? = nil, token: String? = "t", notifications: Bool = true) -> Device {
        Device(
            app: "1", user: "u", id: "d", platform: .android, provider: .fcm, token: token, environment: .production,
            notifications: notifications, registeredAt: 0, refreshedAt: now - days * Self.day,
            lastAcceptedAt: accepted.map { now - $0 * Self.day })
    }

    private func decide(_ policy: Policy, _ devices: [Device], age: TokenAge = .standard) -> Decision {
        .make(
            .init(
                policy: policy, expiresAt: now + 600_000, now: now, devices: devices, tokenAge: age, reach: { _ in (.absent, 0) }))
    }

    @Test("a token that was not told for a month is passed over by what is of little value, and tried for the rest")
    func stale() {
        for policy in Policy.allCases where policy != .realtimeOnly {
            let isPassedOver = policy == .sync || policy == .pushOnly
            let decision = decide(policy, [device(refreshed: 31)])
            #expect(decision.pushes.isEmpty == isPassedOver, "\(policy)")
            #expect(decision.end == (isPassedOver ? .undeliverable : nil) && (!isPassedOver || decision.reason == "token stale"))
            #expect(decide(policy, [device(refreshed: 30)]).pushes.count == 1, "\(policy)")
        }
    }

    @Test("how long is a setting")
    func setting() {
        #expect(decide(.sync, [device(refreshed: 2)], age: TokenAge(staleAfter: .seconds(86_400))).pushes.isEmpty)
        #expect(decide(.sync, [device(refreshed: 40)], age: TokenAge(staleAfter: .seconds(41 * 86_400))).pushes.count == 1)
    }

    @Test("a token that was idle for 270 days is never tried, unless its gateway accepted it since")
    func expired() {
        for policy in [Policy.critical, .both, .notify, .sync, .pushOnly] {
            let decision = decide(policy, [device(refreshed: 271)])
            #expect(decision.pushes.isEmpty && decision.end == .undeliverable && decision.reason == "token expired", "\(policy)")
        }
        #expect(decide(.critical, [device(refreshed: 270)]).pushes.count == 1)
        #expect(decide(.critical, [device(refreshed: 400, accepted: 3)]).pushes.count == 1)
        #expect(decide(.critical, [device(refreshed: 400, accepted: 271)]).pushes.isEmpty)
    }

    @Test("why nobody can be reached names the nearest reason")
    func reasons() {
        func reason(_ devices: [Device]) -> String { decide(.sync, devices).reason }
        #expect(reason([]) == "no device")
        #expect(reason([device(refreshed: 400, token: nil)]) == "no token")
        #expect(reason([device(refreshed: 400, notifications: false)]) == "permission denied")
        #expect(reason([device(refreshed: 400), device(refreshed: 40)]) == "token stale")
        #expect(RecipientNote.Choice.unreachable([device(refreshed: 400)]) == .tokenTooOld)
        #expect(RecipientNote.Choice.unreachable([device(refreshed: 1, notifications: false)]) == .permissionDenied)
        #expect(RecipientNote.Choice.unreachable([device(refreshed: 1, token: nil)]) == .noToken)
        #expect(RecipientNote.Choice.unreachable([]) == .noDevice)
    }
}
