import HubCore
import HubDelivery
import Testing

extension StoreContract {
    static let history: [StoreContract] = [
        StoreContract("who comes back missed the unexpired events that name them and that they did not confirm, in order") { store in
            let both = RecipientOpening(snapshot: RecipientSnapshot(users: ["a", "b"]), note: .awaited)
            let other = RecipientOpening(snapshot: RecipientSnapshot(users: ["b"]), note: .awaited)
            let actor = RecipientOpening(
                snapshot: RecipientSnapshot(users: ["a", "b"]), notes: [RecipientNote(state: .live, choice: .actor), .awaited])
            var long = EventRecord.sample("long", committedAt: 1)
            long.expiresAt = 900_000
            _ = try await store.commit([
                .init(long, recipients: both), .init(.sample("expired", committedAt: 1), recipients: both),
                .init(.sample("confirmed"), recipients: both), .init(.sample("other"), recipients: other),
                .init(.sample("own"), recipients: actor), .init(.sample("pushed"), recipients: both), .init(.sample("plain")),
                .init(.sample("elsewhere", channel: "c"), recipients: both), .init(.sample("foreign", app: "2"), recipients: both),
            ])
            try await store.settle([
                RecipientSettlement(event: "confirmed", confirmed: [0], at: 1_000),
                RecipientSettlement(event: "pushed", pushed: [0], isClosed: true),
            ])
            func missed(_ user: String, now: Int64 = 60_500, limit: Int = 10) async throws -> [MissedEvent] {
                try await store.missed(app: "1", channel: "presence-game-7", user: user, now: now, limit: limit)
            }
            let events = try await missed("a")
            #expect(events.map(\.event.id) == ["long", "pushed"])
            #expect(events.map(\.isPushed) == [false, true] && events.map(\.recipient) == [0, 0])
            #expect(events.first?.event.sequence == 1 && events.first?.note == .awaited)
            let others = try await missed("b")
            #expect(others.map(\.event.id) == ["long", "confirmed", "other", "own", "pushed"])
            #expect(others.map(\.recipient) == [1, 1, 0, 1, 1])
            #expect(try await missed("b", limit: 2).map(\.event.id) == ["long", "confirmed"])
            #expect(try await missed("b", limit: 0) == [])
            #expect(try await missed("nobody") == [])
            #expect(try await missed("a", now: 61_000).map(\.event.id) == ["long"])
            #expect(try await missed("a", now: 900_000) == [])
        },
        StoreContract("ids that only look alike are different recipients") { store in
            let (composed, combined) = ("caf\u{E9}", "cafe\u{301}")
            for (event, padding) in [("short", 0), ("long", 100)] {
                let users = [composed, combined] + (0..<padding).map { "u\($0)" }
                _ = try await store.commit([
                    .init(
                        .sample(event, channel: event),
                        recipients: RecipientOpening(snapshot: RecipientSnapshot(users: users), note: .awaited))
                ])
                for (user, place) in [(composed, 0), (combined, 1)] {
                    let missed = try await store.missed(app: "1", channel: event, user: user, now: 0, limit: 5)
                    #expect(missed.map(\.recipient) == [place])
                    try await store.settle([RecipientSettlement(event: event, confirmed: [place], at: 1_000)])
                    #expect(try await store.missed(app: "1", channel: event, user: user, now: 0, limit: 5) == [])
                }
            }
        },
        StoreContract("a channel's history is what came after a sequence, in order") { store in
            for index in 1...5 { _ = try await store.commit([.init(.sample("e\(index)")), .init(.sample("o\(index)", channel: "o"))]) }
            func history(_ sequence: Int64, _ limit: Int = 10) async throws -> [String] {
                try await store.history(app: "1", channel: "presence-game-7", after: sequence, limit: limit).map(\.id)
            }
            #expect(try await history(0) == ["e1", "e2", "e3", "e4", "e5"])
            #expect(try await history(2, 2) == ["e3", "e4"])
            #expect(try await history(5) == [])
            #expect(try await history(0, 0) == [])
            #expect(try await store.history(app: "2", channel: "o", after: 0, limit: 10) == [])
            #expect(try await store.history(app: "1", channel: "o", after: 4, limit: 10).first?.sequence == 5)
        },
        StoreContract("a user's events come over all channels in the order of their commits, page by page") { store in
            let small = RecipientSnapshot(users: ["a", "b"])
            let large = RecipientSnapshot(users: (0..<200).map { "u\($0)" } + ["a"])
            let without = RecipientSnapshot(users: (0..<200).map { "u\($0)" })
            var expected: [String] = []
            for index in 0..<40 {
                let (app, snapshot) = [("1", small), ("1", large), ("2", small), ("1", without)][index % 4]
                let event = EventRecord.sample("e\(index)", app: app, channel: "c\(index % 3)")
                _ = try await store.commit([.init(event, recipients: RecipientOpening(snapshot: snapshot, note: .awaited))])
                if index % 4 < 2 { expected.append("e\(index)") }
            }
            for limit in [1, 3, 19, 20, 21, 1_000] {
                var found: [UserEvents.Entry] = []
                var page = UserEvents(entries: [], position: 0, isMore: true)
                var pages = 0
                while page.isMore, pages < 100 {
                    page = try await store.events(app: "1", user: "a", after: page.position, limit: limit)
                    #expect(page.entries.count <= limit)
                    found += page.entries
                    pages += 1
                }
                #expect(found.map(\.event.id) == expected, "limit \(limit)")
                #expect(zip(found, found.dropFirst()).allSatisfy { $0.position < $1.position })
                // Asked again from the end: nothing, and the position stays.
                let after = try await store.events(app: "1", user: "a", after: page.position, limit: limit)
                #expect(after.entries == [] && after.position == page.position && !after.isMore)
            }
            let position = try await store.events(app: "1", user: "a", after: 0, limit: 1_000).position
            _ = try await store.commit([.init(.sample("later"), recipients: RecipientOpening(snapshot: large, note: .awaited))])
            #expect(try await store.events(app: "1", user: "a", after: position, limit: 5).entries.map(\.event.id) == ["later"])
            #expect(try await store.events(app: "1", user: "nobody", after: 0, limit: 5).entries == [])
            #expect(try await store.events(app: "2", user: "a", after: 0, limit: 100).entries.count == 10)
        },
        StoreContract("positions are never given again, also when the newest event is gone") { store in
            let opening = RecipientOpening(snapshot: RecipientSnapshot(users: ["a"]), note: RecipientNote(state: .absent, choice: .pushed))
            _ = try await store.commit([.init(.sample("e1", committedAt: 1), recipients: opening)])
            let position = try await store.events(app: "1", user: "a", after: 0, limit: 5).position
            try await store.pruneAll(before: 5 * day)
            #expect(try await store.event(id: "e1") == nil)
            _ = try await store.commit([.init(.sample("e2", committedAt: 8 * day), recipients: opening)])
            #expect(try await store.events(app: "1", user: "a", after: position, limit: 5).entries.map(\.event.id) == ["e2"])
        },
    ]

    static let trails: [StoreContract] = [
        StoreContract("a trail tells of each recipient what was known, decided, confirmed and attempted") { store in
            let notes = [
                RecipientNote(state: .live, choice: .awaited), RecipientNote(state: .absent, choice: .pushed),
                RecipientNote(state: nil, choice: .actor),
            ]
            let snapshot = RecipientSnapshot(users: ["live", "away", "self"])
            let events = try await store.commit([
                .init(
                    .sample("e", committedAt: 10_000),
                    [.sample(event: "e", user: "away", device: "d2"), .sample(event: "e", user: "away")],
                    recipients: RecipientOpening(snapshot: snapshot, notes: notes))
            ])
            try await store.settle([
                RecipientSettlement(event: "e", confirmed: [.init(recipient: 0, at: 10_130)], pushed: [], isClosed: true)
            ])
            var row = PushRecord.sample(event: "e", user: "away", state: .retry)
            for (number, answer) in [(1, "http 503\nagain"), (3, ""), (2, "first"), (2, String(repeating: "é", count: 300))] {
                row.attempt = DeliveryAttempt(number: number, startedAt: 1, endedAt: Int64(number), answer: answer)
                try await store.update([row])
            }
            row.attempt = nil
            row.state = .failed
            row.outcome = "UNREGISTERED"
            try await store.update([row])

            let trail = try #require(try await store.trail(event: "e"))
            #expect(trail.event == events.first && trail.recipientCount == 3 && !trail.isOpen && trail.next == nil)
            #expect(trail.recipients.map(\.user) == ["live", "away", "self"] && trail.recipients.map(\.note) == notes)
            #expect(trail.recipients.map(\.isConfirmed) == [true, false, false])
            #expect(trail.recipients.map(\.confirmedAt) == [10_100, nil, nil])
            #expect(trail.recipients.map(\.isPushed) == [false, true, false])
            #expect(trail.recipients.map(\.deliveries.count) == [0, 2, 0])
            let delivery = try #require(trail.recipients[1].deliveries.first)
            #expect(delivery.record == row)
            #expect(delivery.attempts.map(\.number) == [1, 2, 3] && delivery.attempts.map(\.endedAt) == [1, 2, 3])
            #expect(delivery.attempts.map(\.answer) == ["http 503 again", String(repeating: "é", count: 200), ""])
            #expect(trail.recipients[1].deliveries.last?.attempts == [])

            #expect(try await store.trail(event: "e", user: "away")?.recipients == [trail.recipients[1]])
            #expect(try await store.trail(event: "e", user: "nobody")?.recipients == [])
            #expect(try await store.trail(event: "unknown") == nil)
        },
        StoreContract("a trail of many comes in pages") { store in
            let users = (0..<25).map { "u\($0)" }
            _ = try await store.commit([
                .init(.sample("e"), recipients: RecipientOpening(snapshot: RecipientSnapshot(users: users), note: .awaited)),
                .init(.sample("rows"), users.sorted().map { .sample(event: "rows", user: $0) } + [.sample(event: "rows", device: "d2")]),
            ])
            for (event, expected) in [("e", users), ("rows", users.sorted())] {
                var (found, next): ([String], Int?) = ([], 0)
                while let first = next, found.count < 100 {
                    let page = try #require(try await store.trail(event: event, users: nil, from: first, limit: 10))
                    #expect(page.recipientCount == 25 && page.isOpen == (event == "e"))
                    found += page.recipients.map(\.user)
                    next = page.next
                }
                #expect(found == expected)
                #expect(try await store.trail(event: event, users: nil, from: 100, limit: 10)?.recipients == [])
                #expect(try await store.trail(event: event, users: nil, from: 24, limit: .max)?.recipients.count == 1)
                #expect(try await store.trail(event: event, user: "u1")?.recipients.map(\.user) == ["u1"])
            }
            #expect(try await store.trail(event: "rows", user: "u1")?.recipients.first?.deliveries.count == 2)
        },
        StoreContract("receipt times stop growing after 109 minutes, and a clock set back counts as at once") { store in
            _ = try await store.commit([
                .init(
                    .sample("e", committedAt: 1_000_000),
                    recipients: RecipientOpening(snapshot: RecipientSnapshot(users: ["a", "b", "c"]), note: .awaited))
            ])
            try await store.settle([
                RecipientSettlement(
                    event: "e",
                    confirmed: [.init(recipient: 0, at: .max / 2), .init(recipient: 1, at: 0), .init(recipient: 2, at: 1_000_099)])
            ])
            #expect(try await store.trail(event: "e")?.recipients.map(\.confirmedAt) == [1_000_000 + 65_534 * 100, 1_000_000, 1_000_000])
        },
        StoreContract("a delivery's attempts are kept up to a bound, and its last outcome always") { store in
            _ = try await store.commit([.init(.sample("e"), [.sample(event: "e")])])
            var row = PushRecord.sample(event: "e", state: .retry)
            for number in 1...60 {
                row.attempts = number
                row.outcome = "answer \(number)"
                row.attempt = DeliveryAttempt(number: number, startedAt: 1, endedAt: 2, answer: String(repeating: "x", count: 200))
                try await store.update([row])
            }
            let delivery = try await store.trail(event: "e")?.recipients.first?.deliveries.first
            #expect(delivery?.record.outcome == "answer 60" && delivery?.record.attempts == 60)
            #expect((10..<60).contains(delivery?.attempts.count ?? 0))
        },
    ]
}
