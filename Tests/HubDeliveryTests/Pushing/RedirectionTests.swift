import HubDelivery
import Testing

@Suite("Redirection")
struct RedirectionTests {
    private func mark(_ token: String) -> TokenMark { TokenMark(token, of: .fcm) }

    private func delivery(_ state: PushState = .undeliverable, attempt: DeliveryAttempt? = nil) -> PushRecord {
        var delivery = PushRecord(
            nid: "n", event: "e", app: "1", user: "u", device: "own", state: state, reason: "absent", dueAt: 0, outcome: "no device")
        delivery.attempt = attempt
        return delivery
    }

    private func reachable(_ device: String, _ token: String, isNew: Bool = true) -> Redirection.Reachable {
        Redirection.Reachable(device: device, token: mark(token), isNew: isNew)
    }

    private func row(_ device: String, isOpen: Bool = false, isLeased: Bool = false, accepted: [String] = []) -> RedirectionRow {
        RedirectionRow(device: device, isOpen: isOpen, isLeased: isLeased, accepted: accepted.map(mark))
    }

    private func lost(_ reachable: [Redirection.Reachable], _ others: [RedirectionRow] = []) -> Redirection.Ruling {
        Redirection(delivery: delivery(), token: nil, reachable: reachable).ruling(beside: others)
    }

    @Test("devices that have come take the place of one that has gone, each token once, and no device that was there before")
    func replaced() {
        let come = [reachable("a", "1"), reachable("b", "1"), reachable("c", "2"), reachable("old", "3", isNew: false)]
        #expect(lost(come) == .ends(.cancelled, outcome: "replaced", successors: ["a", "c"]))
        #expect(lost([]) == .ends(.undeliverable, outcome: "no device", successors: []))
        #expect(lost([reachable("own", "1")]) == .ends(.undeliverable, outcome: "no device", successors: []))
    }

    @Test("neither a device with a row nor a token that was told or waits gets another")
    func told() {
        let come = [reachable("a", "1"), reachable("b", "2"), reachable("c", "3"), reachable("x", "3", isNew: false)]
        #expect(
            lost(come, [row("a"), row("gone", accepted: ["2"]), row("x", isOpen: true)])
                == .ends(.undeliverable, outcome: "no device", successors: []))
        // The token that x is being sent to is known; that of y is not.
        #expect(
            lost(come, [row("a"), row("x", isOpen: true, isLeased: true)]) == .ends(.cancelled, outcome: "replaced", successors: ["b"]))
        #expect(lost(come, [row("a"), row("y", isOpen: true, isLeased: true)]) == .waits)
    }

    @Test("what has a token goes on, unless another row has told it or will")
    func own() {
        func ruling(_ others: [RedirectionRow]) -> Redirection.Ruling {
            Redirection(
                delivery: delivery(.due), token: mark("1"), reachable: [reachable("own", "1"), reachable("a", "1"), reachable("b", "2")]
            )
            .ruling(beside: others)
        }
        #expect(ruling([]) == .goesOn(successors: ["b"]))
        #expect(ruling([row("a")]) == .goesOn(successors: ["b"]))
        #expect(ruling([row("a", isOpen: true)]) == .ends(.cancelled, outcome: "same token", successors: []))
        #expect(ruling([row("gone", accepted: ["1"])]) == .ends(.cancelled, outcome: "same token", successors: []))
    }

    @Test("a dead token is not tried under another name, and its end is written down whatever else is under way")
    func dead() {
        let attempt = DeliveryAttempt(number: 1, startedAt: 1, endedAt: 2, answer: "UNREGISTERED", token: mark("1"))
        let redirection = Redirection(
            delivery: delivery(.failed, attempt: attempt), token: nil, reachable: [reachable("a", "1"), reachable("b", "2")])
        #expect(
            redirection.ruling(beside: [row("x", isOpen: true, isLeased: true)]) == .ends(.failed, outcome: "no device", successors: ["b"]))
    }

    @Test("no more devices than a notification may have")
    func bounded() {
        let come = (0..<100).map { reachable("d\($0)", "\($0)") }
        guard case .ends(.cancelled, _, let successors) = lost(come, (0..<20).map { row("x\($0)", accepted: ["t\($0)"]) }) else {
            Issue.record("not replaced")
            return
        }
        #expect(successors.count == Decision.devicesMax - 20)
    }
}
