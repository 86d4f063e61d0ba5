import HubCore
import HubDelivery
import Testing

extension StoreContract {
    static let outcomes: [StoreContract] = [
        StoreContract("an event's outcomes tell of everybody the state, and when receipt, push and acceptance came") { store in
            let choices: [RecipientNote.Choice] = [.awaited, .pushed, .pushed, .pushed, .noDevice, .awaited, .awaited]
            let users = ["read", "accepted", "waiting", "failed", "without", "late", "cleared"]
            let notes = choices.map { RecipientNote(state: .live, choice: $0) }
            func row(_ user: String, _ device: String = "d1", _ state: PushState = .due) -> PushRecord {
                .sample(event: "e", user: user, device: device, state: state, dueAt: 12_000)
            }
            var clear = row("cleared")
            clear.purpose = .clear
            let rows = [
                row("accepted"), row("accepted", "d2"), row("waiting"), row("failed"), row("without", "", .undeliverable), row("late"),
                clear,
            ]
            let opening = RecipientOpening(snapshot: RecipientSnapshot(users: users), notes: notes)
            _ = try await store.commit([.init(.sample("e", committedAt: 10_000), rows, recipients: opening)])
            try await store.settle([RecipientSettlement(event: "e", confirmed: [.init(recipient: 0, at: 11_234)])])
            try await store.end(row("accepted"), as: .retry, attempt: 1, from: 12_010, until: 12_100)
            try await store.end(row("accepted"), as: .accepted, attempt: 2, from: 13_000, until: 13_070)
            try await store.end(row("accepted", "d2"), as: .accepted, attempt: 1, from: 12_020, until: 12_500)
            try await store.end(row("failed"), as: .failed, attempt: 1, from: 12_030, until: 12_040)
            try await store.end(row("late"), as: .accepted, attempt: 1, from: 9_000, until: 9_500)
            try await store.end(clear, as: .accepted, attempt: 1, from: 12_000, until: 12_001)

            let outcomes = try #require(try await store.outcomes(event: "e"))
            #expect(outcomes.event.id == "e" && outcomes.event.sequence == 1 && outcomes.isOpen)
            #expect(outcomes.recipients.map(\.user) == users && outcomes.recipients.map(\.choice) == choices)
            #expect(
                outcomes.recipients.map(\.state) == [.confirmed, .pushed, .pushing, .failed, .undeliverable, .pushed, .awaited])
            #expect(outcomes.recipients.map(\.confirmedAfter) == [1_200, nil, nil, nil, nil, nil, nil])
            #expect(outcomes.recipients.map(\.escalatedAfter) == [nil, 2_010, 2_000, 2_030, nil, 0, nil])
            #expect(outcomes.recipients.map(\.acceptedAfter) == [nil, 2_500, nil, nil, nil, 0, nil])
            try await store.settle([RecipientSettlement(event: "e", isClosed: true)])
            #expect(try await store.outcomes(event: "e")?.recipients.last?.state == .closed)
            #expect(try await store.outcomes(event: "unknown") == nil)
            // The words of the outcomes are those of the trail.
            let trail = try #require(try await store.trail(event: "e"))
            #expect(trail.recipients.map { $0.state(isOpen: false) } == (try await store.outcomes(event: "e"))?.recipients.map(\.state))
        },
        StoreContract("the outcomes of an event of which only push rows are left are those of its rows") { store in
            _ = try await store.commit([
                .init(.sample("e"), [.sample(event: "e", user: "b"), .sample(event: "e", user: "a", state: .failed)])
            ])
            let outcomes = try #require(try await store.outcomes(event: "e"))
            #expect(outcomes.recipients.map(\.user) == ["a", "b"] && outcomes.recipients.map(\.state) == [.failed, .pushing])
            #expect(outcomes.recipients.map(\.choice) == [nil, nil] && !outcomes.isOpen)
        },
        StoreContract("a trail of some users has those that are recipients, in the order asked for") { store in
            let opening = RecipientOpening(snapshot: RecipientSnapshot(users: (0..<100).map { "u\($0)" }), note: .awaited)
            _ = try await store.commit([
                .init(.sample("e"), recipients: opening), .init(.sample("rows"), [.sample(event: "rows", user: "u7")]),
            ])
            let asked = ["u70", "nobody", "u7"]
            let trail = try await store.trail(event: "e", users: asked, from: 50, limit: 10)
            #expect(trail?.recipients.map(\.user) == ["u70", "u7"] && trail?.recipientCount == 100 && trail?.next == nil)
            #expect(try await store.trail(event: "e", users: asked, from: 0, limit: 1)?.recipients.map(\.user) == ["u70"])
            #expect(try await store.trail(event: "e", users: [], from: 0, limit: 10)?.recipients == [])
            #expect(try await store.trail(event: "rows", users: asked, from: 0, limit: 10)?.recipients.map(\.user) == ["u7"])
        },
        StoreContract("a user's trail comes newest first, page by page, and says of each event what became of it") { store in
            let small = RecipientSnapshot(users: ["b", "a"])
            let large = RecipientSnapshot(users: (0..<200).map { "u\($0)" } + ["a"])
            let without = RecipientSnapshot(users: (0..<200).map { "u\($0)" })
            var expected: [String] = []
            for index in 0..<40 {
                let (app, snapshot) = [("1", small), ("1", large), ("2", small), ("1", without)][index % 4]
                let event = EventRecord.sample("e\(index)", app: app, channel: "c\(index % 3)")
                let rows: [PushRecord] = index == 0 ? [.sample(event: "e0", user: "a"), .sample(event: "e0", user: "b")] : []
                _ = try await store.commit([.init(event, rows, recipients: RecipientOpening(snapshot: snapshot, note: .awaited))])
                if index % 4 < 2 { expected.insert("e\(index)", at: 0) }
            }
            for limit in [1, 3, 19, 20, 21, 100] {
                var found: [UserTrail.Entry] = []
                var (next, pages): (Int64?, Int) = (.max, 0)
                while let position = next, pages < 100 {
                    let page = try await store.trail(app: "1", user: "a", before: position, limit: limit)
                    #expect(page.entries.count <= limit)
                    found += page.entries
                    (next, pages) = (page.next, pages + 1)
                }
                #expect(found.map(\.trail.event.id) == expected, "limit \(limit)")
                #expect(found.allSatisfy { $0.trail.recipients.map(\.user) == ["a"] && $0.trail.isOpen })
                #expect(zip(found, found.dropFirst()).allSatisfy { $0.position > $1.position })
                #expect(found.last?.trail.recipients.first?.deliveries.count == 1 && found.first?.trail.recipientCount == 201)
            }
            #expect(try await store.trail(app: "1", user: "nobody", before: .max, limit: 5) == UserTrail(entries: [], next: nil))
            #expect(try await store.trail(app: "2", user: "a", before: .max, limit: 100).entries.count == 10)
        },
    ]
}

extension DeliveryStore {
    /// Writes the result of an attempt.
    fileprivate func end(_ row: PushRecord, as state: PushState, attempt: Int, from start: Int64, until end: Int64) async throws {
        var row = row
        row.state = state
        row.attempts = attempt
        row.attempt = DeliveryAttempt(number: attempt, startedAt: start, endedAt: end, answer: state.rawValue)
        try await update([row])
    }
}
