import HubCore
import HubDefinitions
import HubDelivery
import Testing

extension StoreContract {
    static let deliveries: [StoreContract] = [
        StoreContract("an event and its deliveries are read as they were committed") { store in
            var event = EventRecord.sample("e1")
            event.data = "{\"nul\":\"\u{0}\",\"text\":\"äöü 🎯\\u0000\"}"
            let pushed = PushRecord.sample(event: "e1", user: "b", device: "d2", message: .sample(event: "e1", user: "b"))
            var direct = PushRecord.sample(event: "e1", user: "b", device: "d3", message: .sample(event: "e1", user: "b"))
            direct.address = DirectAddress(provider: .apns, platform: .ios, environment: .sandbox, form: .token, text: "ab\"12")
            let told = PushRecord.sample(event: "e1", user: "b", device: "", state: .socket)
            let other = PushRecord.sample(event: "e1", user: "a", device: "d9", state: .undeliverable)
            let committed = try await store.commit([.init(event, [pushed, direct, told, other])])
            event.sequence = 1
            #expect(committed == [event])
            #expect(try await store.event(id: "e1") == event)
            #expect(try await store.event(id: "e2") == nil)
            var stored = pushed
            stored.message?.sequence = 1
            direct.message?.sequence = 1
            #expect(try await store.deliveries(event: "e1") == [other, told, stored, direct])
            #expect(try await store.deliveries(event: "e2") == [])
            #expect(try await store.commit([]) == [])
        },
        StoreContract("of some events those deliveries are read that are still due, whatever became of the others") { store in
            func row(_ event: String, _ user: String, _ state: PushState = .due) -> PushRecord {
                var row = PushRecord.sample(event: event, user: user, device: "d", state: state, message: .sample(event: event, user: user))
                row.message?.sequence = 1
                return row
            }
            for event in ["e1", "e2", "e3"] {
                let rows = [row(event, "a"), row(event, "b"), row(event, "c", .undeliverable)]
                _ = try await store.commit([.init(.sample(event, channel: event), rows)])
            }
            #expect(try await store.dueDeliveries(events: ["e1", "e3", "none"]).count == 4)
            var leased = [row("e1", "a"), row("e1", "b")]
            for place in leased.indices { leased[place].attempts = 1 }
            leased = try await store.lease(leased)
            leased[0].state = .accepted
            try await store.update([leased[0]])
            #expect(try await store.dueDeliveries(events: ["e1"]) == [])
            #expect(try await store.dueDeliveries(events: ["e2"]) == [row("e2", "a"), row("e2", "b")])
            #expect(try await store.dueDeliveries(events: []) == [])
        },
        StoreContract("messages that say the same are read as they were committed, beside those that do not") { store in
            func row(_ user: String, _ device: String = "d1", title: String? = nil, nid: String? = nil) -> PushRecord {
                var message = PushMessage.sample(event: "e1", user: user)
                if let title { message.title = title }
                if let nid { message.nid = nid }
                return .sample(event: "e1", user: user, device: device, message: message)
            }
            let committed = [
                row("a"), row("b"), row("b", "d2"), row("c", title: "Carol"), row("d", nid: "another\"id"), row("e"),
                row("f", title: "Carol"),
            ]
            _ = try await store.commit([.init(.sample("e1"), committed), .init(.sample("e2"), [.sample(event: "e2")])])
            let later = [row("g"), row("h"), row("i", title: "Ida"), row("b", title: "is there")]
            #expect(try await store.escalate(later, []) == Array(later.dropLast()))
            let expected = (committed + later.dropLast()).map { delivery in
                var delivery = delivery
                delivery.message?.sequence = 1
                return delivery
            }
            #expect(try await store.deliveries(event: "e1") == expected)
            var ended = expected[0]
            (ended.state, ended.outcome) = (.accepted, "accepted")
            try await store.update([ended])
            #expect(try await store.deliveries(event: "e1") == [ended] + expected.dropFirst())
            let open = try await store.openDeliveries(limit: 100).filter { $0.event == "e1" }
            #expect(Set(open.map { $0.message?.nid }) == Set(expected.dropFirst().map { $0.message?.nid }))
            #expect(open.allSatisfy { expected.contains($0) } && open.count == expected.count - 1)
        },
        StoreContract("every policy and state survives") { store in
            for (index, policy) in Policy.allCases.enumerated() {
                var event = EventRecord.sample("p\(index)")
                event.policy = policy
                _ = try await store.commit([.init(event)])
                #expect(try await store.event(id: "p\(index)")?.policy == policy)
            }
            let rows = PushState.allCases.map { PushRecord.sample(event: "s", device: $0.rawValue, state: $0) }
            _ = try await store.commit([.init(.sample("s"), rows)])
            #expect(Set(try await store.deliveries(event: "s").map(\.state)) == Set(PushState.allCases))
            #expect(Set(try await store.openDeliveries(limit: 100).map(\.state)) == Set(PushState.open))
        },
        StoreContract("sequences count from 1 per app and channel, in the order of the batch") { store in
            let first = try await store.commit([
                .init(.sample("e1", channel: "a")), .init(.sample("e2", channel: "b")), .init(.sample("e3", channel: "a")),
            ])
            #expect(first.map(\.sequence) == [1, 1, 2])
            let second = try await store.commit([
                .init(.sample("e4", channel: "a")), .init(.sample("e5", app: "2", channel: "a")),
            ])
            #expect(second.map(\.sequence) == [3, 1])
        },
        StoreContract("a batch is committed entirely or not at all, and leaves no gap") { store in
            _ = try await store.commit([.init(.sample("e1"))])
            await #expect(throws: (any Error).self) {
                _ = try await store.commit([.init(.sample("e2"), [.sample(event: "e2")]), .init(.sample("e1"))])
            }
            #expect(try await store.event(id: "e2") == nil)
            #expect(try await store.openDeliveries(limit: 10) == [])
            #expect(try await store.commit([.init(.sample("e3"))]).map(\.sequence) == [2])
        },
        StoreContract("open deliveries come soonest due first, up to the limit") { store in
            let rows = [(300, "c"), (100, "a"), (200, "b"), (50, "ended")].map { due, device in
                PushRecord.sample(
                    event: "e", device: device, state: device == "ended" ? .accepted : .retry, dueAt: Int64(due))
            }
            _ = try await store.commit([.init(.sample("e"), rows)])
            #expect(try await store.openDeliveries(limit: 10).map(\.device) == ["a", "b", "c"])
            #expect(try await store.openDeliveries(limit: 2).map(\.device) == ["a", "b"])
            #expect(try await store.openDeliveries(limit: 0) == [])
            let others = try await store.openDeliveries(limit: 1) { $0.device != "a" && $0.nid == "nid-e-u1" && $0.state == .retry }
            #expect(others.map(\.device) == ["b"], "what is not asked for takes no place of the limit")
        },
        StoreContract("an update writes what became of a delivery and nothing else") { store in
            _ = try await store.commit([
                .init(.sample("e"), [.sample(event: "e", message: .sample(event: "e")), .sample(event: "e", device: "d2")])
            ])
            var delivery = try #require(try await store.deliveries(event: "e").first)
            let message = delivery.message
            delivery.state = .retry
            delivery.attempts = 2
            delivery.dueAt = 9_000
            delivery.providerID = "projects/p/messages/1"
            delivery.outcome = "http 503"
            var written = delivery
            written.message = nil
            written.reason = "live"
            var unknown = delivery
            unknown.device = "d3"
            try await store.update([written, unknown])
            #expect(delivery.message == message)
            #expect(try await store.deliveries(event: "e") == [delivery, .sample(event: "e", device: "d2")])
            delivery.providerID = nil
            delivery.outcome = nil
            delivery.state = .cancelled
            try await store.update([delivery])
            #expect(try await store.deliveries(event: "e").first == delivery)
            #expect(try await store.openDeliveries(limit: 10).map(\.device) == ["d2"])
            // It has ended: whoever did not hear of it in time opens it no more.
            try await store.update([written])
            #expect(try await store.deliveries(event: "e").first == delivery)
            try await store.update([])
        },
        StoreContract("what is open tells when it was first attempted, and after a replay nothing of what was before") { store in
            let other = PushRecord.sample(event: "e", device: "d2")
            _ = try await store.commit([.init(.sample("e"), [.sample(event: "e", message: .sample(event: "e")), other])])
            #expect(try await store.firstAttempts() == [:])
            try await store.attempted(1, at: 2_000, .retry)
            try await store.attempted(2, at: 3_000, .retry)
            #expect(try await store.firstAttempts() == ["d1": 2_000])
            try await store.attempted(3, at: 4_000, .failed)
            #expect(
                try await store.replayDeadLetters(.nids([PushRecord.sample(event: "e").nid]), app: "1", now: 5_000, ttl: nil).due.count == 1
            )
            #expect(try await store.firstAttempts() == [:])
            try await store.attempted(1, at: 6_000, .retry)
            #expect(try await store.firstAttempts() == ["d1": 6_000])
        },
        StoreContract("pruning removes old ended events with what belongs to them, and keeps the channel's count") { store in
            _ = try await store.commit([
                .init(.sample("open", committedAt: 1), [.sample(event: "open"), .sample(event: "open", device: "x", state: .socket)]),
                .init(.sample("a", committedAt: 4 * day), [.sample(event: "a", state: .accepted)]),
                .init(.sample("b", committedAt: 4 * day + 1)),
                .init(.sample("c", committedAt: 4 * day + 2), [.sample(event: "c", state: .failed, message: .sample(event: "c"))]),
                .init(.sample("edge", committedAt: 8 * day)),
            ])
            #expect(try await store.prune(before: 8 * day, limit: 0) == 0)
            #expect(try await store.event(id: "a") != nil)
            try await store.pruneAll(before: 8 * day)
            for id in ["a", "b", "c"] {
                #expect(try await store.event(id: id) == nil, "\(id)")
                #expect(try await store.deliveries(event: id) == [], "\(id)")
            }
            #expect(try await store.deliveries(event: "open").count == 2)
            #expect(try await store.event(id: "edge") != nil)
            #expect(try await store.prune(before: 8 * day, limit: 2) == 0)
            try await store.update([.sample(event: "open", state: .expired)])
            try await store.pruneAll(before: 12 * day)
            #expect(try await store.event(id: "open") == nil)
            #expect(try await store.event(id: "edge") == nil)
            #expect(try await store.commit([.init(.sample("d", committedAt: 12 * day))]).map(\.sequence) == [6])
        },
    ]

    static let concurrency: [StoreContract] = [
        StoreContract("a hundred joins of one e-mail at once make one participant") { store in
            let session = try await store.makeSession()
            let numbers = try await withThrowingTaskGroup(of: Int64.self) { group in
                for index in 0..<100 {
                    group.addTask {
                        try await store.join(session, index.isMultiple(of: 2) ? "Ada@example.org" : "ada@example.org").number
                    }
                }
                return try await group.reduce(into: Set<Int64>()) { $0.insert($1) }
            }
            #expect(numbers.count == 1)
            #expect(try await store.participants(app: "1", session: "game-7").count == 1)
        },
        StoreContract("fifty joins of one device and fifty of others at once make fifty-one participants") { store in
            let session = try await store.makeSession()
            let users = try await withThrowingTaskGroup(of: String.self) { group in
                for index in 0..<100 {
                    group.addTask { try await store.join(session, device: index < 50 ? "one" : "\(index)").user }
                }
                return try await group.reduce(into: Set<String>()) { $0.insert($1) }
            }
            #expect(users.count == 51)
        },
        StoreContract("concurrent commits of one channel get gap-free sequences, failing ones none") { store in
            _ = try await store.commit([.init(.sample("taken"))])
            let sequences = try await withThrowingTaskGroup(of: Int64?.self) { group in
                for index in 0..<300 {
                    group.addTask {
                        if index.isMultiple(of: 7) {
                            await #expect(throws: (any Error).self) {
                                _ = try await store.commit([.init(.sample("e\(index)")), .init(.sample("taken"))])
                            }
                            return nil
                        }
                        return try await store.commit([
                            .init(.sample("e\(index)"), [.sample(event: "e\(index)", message: .sample(event: "e\(index)"))])
                        ]).first?.sequence
                    }
                }
                return try await group.reduce(into: [Int64]()) { if let sequence = $1 { $0.append(sequence) } }
            }
            #expect(sequences.sorted() == Array(2...258))
            #expect(try await store.openDeliveries(limit: 1_000).count == 257)
        },
        StoreContract("a token registered by many at once ends with one owner") { store in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<50 {
                    group.addTask { _ = try await store.putDevice(.sample(user: "u\(index)")) }
                }
                try await group.waitForAll()
            }
            var owners = 0
            for index in 0..<50 where try await store.device(app: "1", user: "u\(index)", id: "phone")?.token != nil {
                owners += 1
            }
            #expect(owners == 1)
        },
    ]
}

extension DeliveryStore {
    /// Writes down what became of the first row of the event `e` in an attempt.
    fileprivate func attempted(_ number: Int, at start: Int64, _ state: PushState) async throws {
        var delivery = try #require(try await deliveries(event: "e").first)
        (delivery.state, delivery.attempts, delivery.outcome) = (state, number, "http 503")
        delivery.attempt = DeliveryAttempt(number: number, startedAt: start, endedAt: start + 1, answer: "http 503")
        try await update([delivery])
    }

    /// Times of the first attempts, by device.
    fileprivate func firstAttempts() async throws -> [String: Int64] {
        try await openDeliveries(limit: 9).reduce(into: [:]) { $0[$1.device] = $1.firstAttemptAt }
    }
}
