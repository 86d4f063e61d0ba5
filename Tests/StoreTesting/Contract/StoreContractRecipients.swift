import HubCore
import HubDelivery
import Testing

extension StoreContract {
    static let fanouts: [StoreContract] = [
        StoreContract("recipients are read as they were committed, in their order, whatever their ids are") { store in
            let users = ["zoe", "adam", "", "ü🎯\u{1}\n", String(repeating: "x", count: 300)]
            let notes = [
                RecipientNote(state: .live, choice: .awaited), RecipientNote(state: .absent, choice: .pushed),
                RecipientNote(state: nil, choice: .actor), RecipientNote(state: .backgroundCapable, choice: .other),
                RecipientNote(state: .grace, choice: .awaited),
            ]
            let opening = RecipientOpening(snapshot: RecipientSnapshot(users: users), notes: notes)
            let events = try await store.commit([.init(.sample("e1"), recipients: opening)])
            let open = try await store.openFanouts(limit: 10)
            #expect(open.map(\.event) == events && open.first?.users == users && open.first?.notes == notes)
            #expect(open.first?.confirmed.isEmpty == true)
            #expect(open.first.map { open in users.indices.filter { open.pushed.contains($0) } } == [1])
            #expect(open.first?.unsettled == [0, 4])
        },
        StoreContract("a fan-out is open only when a receipt is awaited, and closed for good") { store in
            let two = RecipientSnapshot(users: ["a", "b"])
            _ = try await store.commit([
                .init(.sample("awaited"), recipients: RecipientOpening(snapshot: two, note: .awaited)),
                .init(.sample("pushed"), recipients: RecipientOpening(snapshot: two, note: RecipientNote(state: .absent, choice: .pushed))),
                .init(.sample("nobody"), recipients: RecipientOpening(snapshot: RecipientSnapshot(users: []), notes: [])),
                .init(.sample("plain")),
            ])
            #expect(try await store.openFanouts(limit: 10).map(\.event.id) == ["awaited"])
            try await store.settle([RecipientSettlement(event: "awaited", isClosed: true)])
            #expect(try await store.openFanouts(limit: 10) == [])
            try await store.settle([RecipientSettlement(event: "awaited", confirmed: [0], at: 1_000)])
            #expect(try await store.openFanouts(limit: 10) == [])
        },
        StoreContract("open fan-outs come oldest first, up to the limit, each with its own places") { store in
            let users = RecipientSnapshot(users: (0..<70).map { "u\($0)" })
            for index in 0..<5 {
                _ = try await store.commit([
                    .init(.sample("e\(index)", channel: "c\(index % 2)"), recipients: RecipientOpening(snapshot: users, note: .awaited))
                ])
            }
            #expect(try await store.openFanouts(limit: 0) == [])
            let first = try await store.openFanouts(limit: 3)
            #expect(first.map(\.event.id) == ["e0", "e1", "e2"])
            let rest = try await store.openFanouts(after: first.last?.position ?? 0, limit: 3)
            #expect(rest.map(\.event.id) == ["e3", "e4"])
            #expect(try await store.openFanouts(after: rest.last?.position ?? 0, limit: 3) == [])
            try await store.settle([
                RecipientSettlement(event: "e1", confirmed: [69, 0], at: 1_200), RecipientSettlement(event: "e2", pushed: [7, 8]),
                RecipientSettlement(event: "e0", isClosed: true),
            ])
            let open = try await store.openFanouts(limit: 10)
            #expect(open.map(\.event.id) == ["e1", "e2", "e3", "e4"])
            #expect(open.map(\.unsettled) == [Array(1..<69), Array(0..<7) + Array(9..<70), Array(0..<70), Array(0..<70)])
            #expect(open.map(\.event.sequence) == [1, 2, 2, 3])
        },
        StoreContract("settling again changes nothing, and what is not there is passed over") { store in
            _ = try await store.commit([
                .init(.sample("e"), recipients: RecipientOpening(snapshot: RecipientSnapshot(users: ["a", "b", "c"]), note: .awaited))
            ])
            let settlement = RecipientSettlement(event: "e", confirmed: [.init(recipient: 1, at: 1_450)], pushed: [2])
            try await store.settle([settlement])
            let first = try await store.openFanouts(limit: 1)
            let trail = try await store.trail(event: "e")
            try await store.settle([settlement, settlement])
            try await store.settle([RecipientSettlement(event: "e", confirmed: [1], at: 9_000)])
            try await store.settle([
                RecipientSettlement(
                    event: "e", confirmed: [.init(recipient: 3, at: 1), .init(recipient: -1, at: 1)], pushed: [3, -1, .max]),
                RecipientSettlement(event: "unknown", confirmed: [0], at: 1, isClosed: true),
            ])
            try await store.settle([])
            #expect(try await store.openFanouts(limit: 1) == first && first.first?.unsettled == [0])
            #expect(try await store.trail(event: "e") == trail && trail?.recipients[1].confirmedAt == 1_400)
        },
        StoreContract("recipients and events are committed together or not at all") { store in
            let opening = RecipientOpening(snapshot: RecipientSnapshot(users: ["a"]), note: .awaited)
            _ = try await store.commit([.init(.sample("taken"))])
            await #expect(throws: (any Error).self) {
                _ = try await store.commit([.init(.sample("e1"), recipients: opening), .init(.sample("taken"), recipients: opening)])
            }
            #expect(try await store.openFanouts(limit: 10) == [])
            #expect(try await store.events(app: "1", user: "a", after: 0, limit: 10).entries == [])
            _ = try await store.commit([.init(.sample("e1"), recipients: opening)])
            #expect(try await store.openFanouts(limit: 10).map(\.event.id) == ["e1"])
        },
        StoreContract("escalating writes the rows and the places together, and tells which rows are new") { store in
            _ = try await store.commit([
                .init(
                    .sample("e"), [.sample(event: "e", user: "a", state: .accepted)],
                    recipients: RecipientOpening(snapshot: RecipientSnapshot(users: ["a", "b"]), note: .awaited))
            ])
            let rows = [
                PushRecord.sample(event: "e", user: "a", state: .due),
                PushRecord.sample(event: "e", user: "b", state: .due, message: .sample(event: "e", user: "b")),
            ]
            let settlement = RecipientSettlement(event: "e", pushed: [0, 1], isClosed: true)
            #expect(try await store.escalate(rows, [settlement]) == [rows[1]])
            #expect(try await store.escalate(rows, [settlement]) == [])
            #expect(try await store.deliveries(event: "e").map(\.state) == [.accepted, .due])
            #expect(try await store.openDeliveries(limit: 10).first?.message?.sequence == 1)
            #expect(try await store.trail(event: "e")?.recipients.map(\.isPushed) == [true, true])
            #expect(try await store.escalate([], []) == [])
        },
        StoreContract("an escalation that fails writes neither rows nor places") { store in
            _ = try await store.commit([
                .init(.sample("e"), recipients: RecipientOpening(snapshot: RecipientSnapshot(users: ["a"]), note: .awaited))
            ])
            await #expect(throws: (any Error).self) {
                _ = try await store.escalate(
                    [.sample(event: "e", user: "a"), .sample(event: "unknown", user: "a")], [RecipientSettlement(event: "e", pushed: [0])])
            }
            #expect(try await store.deliveries(event: "e") == [])
            #expect(try await store.openFanouts(limit: 1).first?.unsettled == [0])
        },
        StoreContract("a receipt cancels what waits to be sent, and nothing that is being sent or has ended") { store in
            let states: [PushState] = [.waiting, .due, .retry, .accepted, .undeliverable]
            _ = try await store.commit([
                .init(
                    .sample("e"),
                    states.map { .sample(event: "e", user: "a", device: $0.rawValue, state: $0, message: .sample(event: "e")) }
                        + [.sample(event: "e", user: "a", device: "leased", message: .sample(event: "e"))]
                        + [.sample(event: "e", user: "b"), .sample(event: "e", user: "c")]),
                .init(.sample("other"), [.sample(event: "other", user: "a")]),
            ])
            var lease = PushRecord.sample(event: "e", user: "a", device: "leased", message: .sample(event: "e"))
            (lease.state, lease.attempts) = (.leased, 1)
            #expect(try await store.lease([lease]).count == 1)
            let cancelled = try await store.cancelDeliveries(event: "e", ["a", "c", "nobody"].map { PushCancellation(user: $0) })
            #expect(cancelled.map(\.user) == ["a", "a", "a", "c"])
            #expect(Set(cancelled.map(\.device)) == ["waiting", "due", "retry", "d1"])
            #expect(cancelled.allSatisfy { $0.state == .cancelled && $0.outcome == "receipt" && $0.nid == "nid-e-\($0.user)" })
            let open = try await store.openDeliveries(limit: 10)
            #expect(Set(open.map { "\($0.event) \($0.user) \($0.device)" }) == ["e a leased", "e b d1", "other a d1"])
            #expect(try await store.cancelDeliveries(event: "e", [PushCancellation(user: "a")]) == [])
            #expect(try await store.cancelDeliveries(event: "e", []) == [])
        },
        StoreContract("a receipt of one device cancels its own pushes, and one of the event none that go out in any case") { store in
            func rows(_ user: String) -> [PushRecord] {
                [("phone", "absent"), ("tablet", "absent"), ("watch", "both"), ("web", "push_only")].map { device, reason in
                    var row = PushRecord.sample(event: "e", user: user, device: device, message: .sample(event: "e"))
                    row.reason = reason
                    return row
                }
            }
            _ = try await store.commit([.init(.sample("e"), rows("a") + rows("b") + rows("c"))])
            func cancelled(_ cancellation: PushCancellation) async throws -> Set<String> {
                Set(try await store.cancelDeliveries(event: "e", [cancellation]).map(\.device))
            }
            #expect(try await cancelled(PushCancellation(user: "a", device: "phone")) == ["phone"])
            #expect(try await cancelled(PushCancellation(user: "a", device: "watch")) == [])
            #expect(try await cancelled(PushCancellation(user: "a", device: "watch", isOfNotification: true)) == ["watch"])
            #expect(try await cancelled(PushCancellation(user: "b")) == ["phone", "tablet"])
            #expect(try await cancelled(PushCancellation(user: "c", isOfNotification: true)) == ["phone", "tablet", "watch", "web"])
        },
        StoreContract("a delivery that was cancelled is not leased") { store in
            _ = try await store.commit([
                .init(.sample("e"), [.sample(event: "e", user: "a"), .sample(event: "e", user: "b", message: .sample(event: "e"))])
            ])
            _ = try await store.cancelDeliveries(event: "e", [PushCancellation(user: "a")])
            var leases = [PushRecord.sample(event: "e", user: "a"), .sample(event: "e", user: "b"), .sample(event: "e", user: "c")]
            for index in leases.indices {
                leases[index].state = .leased
                leases[index].attempts = 1
                leases[index].dueAt = 77
            }
            #expect(try await store.lease(leases) == [leases[1]])
            #expect(try await store.lease([]) == [])
            let rows = try await store.deliveries(event: "e")
            #expect(rows.map(\.state) == [.cancelled, .leased] && rows.last?.dueAt == 77 && rows.last?.attempts == 1)
            #expect(rows.first?.outcome == "receipt")
        },
        StoreContract("the last mark of somebody being there is kept, and none is there in the beginning") { store in
            #expect(try await store.lastAttendance() == nil)
            for time in [5000, 17_000, 9000] as [Int64] {
                try await store.markAttendance(at: time)
                #expect(try await store.lastAttendance() == time)
            }
        },
        StoreContract("an attempt that was under way when its delivery was cancelled is kept for the trail") { store in
            _ = try await store.commit([.init(.sample("e"), [.sample(event: "e", user: "a")])])
            _ = try await store.cancelDeliveries(event: "e", [PushCancellation(user: "a")])
            var sent = PushRecord.sample(event: "e", user: "a")
            sent.state = .accepted
            sent.attempt = DeliveryAttempt(number: 1, startedAt: 2, endedAt: 3, answer: "accepted")
            try await store.update([sent])
            let row = try #require(try await store.trail(event: "e")?.recipients.first?.deliveries.first)
            #expect(
                row.record.state == .cancelled && row.attempts == [DeliveryAttempt(number: 1, startedAt: 2, endedAt: 3, answer: "accepted")]
            )
        },
        StoreContract("an event with an open fan-out is not pruned; one that closed is, with all that belongs to it") { store in
            let opening = RecipientOpening(snapshot: RecipientSnapshot(users: ["a"]), note: .awaited)
            _ = try await store.commit([.init(.sample("e1", committedAt: 1), recipients: opening)])
            #expect(try await store.prune(before: 5 * day, limit: 10) == 0)
            #expect(try await store.trail(event: "e1") != nil)
            try await store.settle([RecipientSettlement(event: "e1", isClosed: true)])
            _ = try await store.commit([.init(.sample("e2", committedAt: 8 * day), recipients: opening)])
            try await store.pruneAll(before: 5 * day)
            #expect(try await store.trail(event: "e1") == nil)
            #expect(try await store.events(app: "1", user: "a", after: 0, limit: 10).entries.map(\.event.id) == ["e2"])
            // Settled after it was pruned.
            try await store.settle([RecipientSettlement(event: "e1", confirmed: [0], at: 9 * day)])
            #expect(try await store.openFanouts(limit: 10).map(\.users) == [["a"]])
        },
    ]
}

extension RecipientNote {
    package static let awaited = RecipientNote(state: .live, choice: .awaited)
}
