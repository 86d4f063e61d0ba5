import HubDelivery
import Testing

extension StoreContract {
    /// Subjects of receipts that apps send themselves, in every store.
    static let receipts: [StoreContract] = [
        StoreContract("a receipt's recipient is found by the event, for recipients of the app only") { store in
            let opening = RecipientOpening(
                snapshot: RecipientSnapshot(users: ["a", "b"]), note: RecipientNote(state: .live, choice: .awaited))
            let event = try #require(try await store.commit([EventCommit(.sample("e1"), recipients: opening)]).first)
            #expect(try await store.receiptTarget(event: "e1", app: "1", user: "b") == ReceiptTarget(event: event, recipient: 1))
            #expect(try await store.receiptTarget(event: "e1", app: "1", user: "c") == nil)
            #expect(try await store.receiptTarget(event: "e1", app: "2", user: "b") == nil)
            #expect(try await store.receiptTarget(event: "e2", app: "1", user: "b") == nil)
        },
        StoreContract("a notification's id leads to its event, in small and large sessions, for its own user") { store in
            let note = RecipientNote(state: .absent, choice: .pushed)
            let sessions = [("small", ["a", "b"]), ("large", (0..<5_000).map { "u\($0)" } + ["b"])]
            for (event, users) in sessions {
                _ = try await store.commit(
                    [EventCommit(.sample(event), recipients: RecipientOpening(snapshot: RecipientSnapshot(users: users), note: note))])
            }
            for (event, _) in sessions {
                let nid = NotificationID.make(event: event, app: "1", user: "b")
                #expect(try await store.eventID(nid: nid, app: "1", user: "b") == event)
                #expect(try await store.eventID(nid: nid, app: "1", user: "a") == nil)
                #expect(try await store.eventID(nid: nid, app: "2", user: "b") == nil)
            }
            #expect(try await store.eventID(nid: "", app: "1", user: "b") == nil)
            let unknown = NotificationID.make(event: "other", app: "1", user: "b")
            #expect(try await store.eventID(nid: unknown, app: "1", user: "b") == nil)
        },
        StoreContract("refused scheduled publishes are listed, the latest first") { store in
            try await store.schedule([.sample("a"), .sample("b"), .sample("c"), .sample("x", app: "2")], answers: [])
            for (id, now) in [("b", 10), ("a", 20), ("x", 30)] as [(String, Int64)] {
                try await store.failScheduled(id: id, outcome: "why \(id)", now: now)
            }
            let failed = try await store.failedScheduled(app: "1", limit: 10)
            #expect(failed.map(\.id) == ["a", "b"] && failed.map(\.outcome) == ["why a", "why b"])
            #expect(try await store.failedScheduled(app: "1", limit: 1).map(\.id) == ["a"])
            #expect(try await store.failedScheduled(app: "1", limit: 0) == [])
        },
    ]
}
