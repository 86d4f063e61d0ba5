import HubDefinitions
import HubDelivery
import Testing

extension StoreContract {
    /// Clearing rows next to their notifications, in every store.
    static let clears: [StoreContract] = [
        StoreContract("a device's clear stands beside its notification, is inserted once, and reads back as what it is") { store in
            let alert = PushRecord.sample(event: "e", device: "phone", state: .accepted, message: .sample(event: "e"))
            let other = PushRecord.sample(event: "e", user: "u2", device: "phone", state: .accepted)
            _ = try await store.commit([.init(.sample("e"), [alert, other, .sample(event: "e", device: "", state: .socket)])])
            let clear = PushRecord.clear(event: "e", device: "phone")
            #expect(try await store.escalate([clear, .clear(event: "e", device: "tablet")], []).map(\.device) == ["phone", "tablet"])
            #expect(try await store.escalate([clear], []) == [])

            let rows = try await store.deliveries(event: "e")
            #expect(rows.map(\.device) == ["", "phone", "phone", "tablet", "phone"])
            #expect(rows.map(\.purpose) == [.notification, .notification, .clear, .clear, .notification])
            #expect(try await store.deliveries(event: "e", user: "u2") == [other])
            #expect(try await store.deliveries(event: "e", user: "u1") == Array(rows.prefix(4)))
            var stored = clear
            stored.message?.sequence = 1
            #expect(try await store.openDeliveries(limit: 10).first { $0.device == "phone" } == stored)
            let trail = try await store.trail(event: "e", user: "u1")?.recipients.first?.deliveries
            #expect(trail?.map(\.record.device) == ["", "phone", "phone", "tablet"])
            #expect(trail?.map(\.record.purpose) == [.notification, .notification, .clear, .clear])
        },
        StoreContract("what becomes of a clear leaves its notification alone, and the other way round") { store in
            var alert = PushRecord.sample(event: "e", device: "phone", state: .due, message: .sample(event: "e"))
            var clear = PushRecord.clear(event: "e", device: "phone")
            _ = try await store.commit([.init(.sample("e"), [alert, clear])])
            clear.state = .leased
            #expect(try await store.lease([clear]).count == 1)
            clear.state = .accepted
            clear.providerID = "p"
            clear.attempt = DeliveryAttempt(number: 1, startedAt: 1, endedAt: 2, answer: "accepted")
            try await store.update([clear])
            #expect(try await store.deliveries(event: "e").map(\.state) == [.due, .accepted])
            alert.state = .expired
            try await store.update([alert])
            #expect(try await store.deliveries(event: "e").map(\.state) == [.expired, .accepted])
            let trail = try await store.trail(event: "e", user: "u1")?.recipients.first?.deliveries
            #expect(trail?.map(\.attempts.count) == [0, 1])
        },
        StoreContract("a receipt ends no clear, neither of all devices nor of its own") { store in
            let alert = PushRecord.sample(event: "e", device: "phone", state: .due, message: .sample(event: "e"))
            _ = try await store.commit([
                .init(.sample("e"), [alert, .clear(event: "e", device: "phone"), .clear(event: "e", device: "tablet")])
            ])
            let own = try await store.cancelDeliveries(event: "e", [PushCancellation(user: "u1", device: "tablet", isOfNotification: true)])
            #expect(own == [])
            let all = try await store.cancelDeliveries(event: "e", [PushCancellation(user: "u1", isOfNotification: true)])
            #expect(all.map(\.purpose) == [.notification])
            #expect(try await store.deliveries(event: "e").map(\.state) == [.cancelled, .due, .due])
        },
        StoreContract("a receipt during an attempt lets it end as it does, save that it is not repeated") { store in
            let (again, there, failed) = ("again", "there", "failed")
            var both = PushRecord.sample(event: "e", device: "z", state: .due, message: .sample(event: "e"))
            both.reason = Policy.both.rawValue
            let rows =
                [again, failed, there].map { PushRecord.sample(event: "e", device: $0, state: .due, message: .sample(event: "e")) } + [both]
            _ = try await store.commit([.init(.sample("e"), rows)])
            var sent = try await store.lease(
                rows.map { row in
                    var row = row
                    (row.state, row.attempts) = (.leased, 1)
                    return row
                })
            #expect(try await store.cancelDeliveries(event: "e", [PushCancellation(user: "u1")]) == [])
            #expect(try await store.deliveries(event: "e").map(\.state) == [.leased, .leased, .leased, .leased])
            for (index, state) in [PushState.retry, .failed, .accepted, .retry].enumerated() {
                (sent[index].state, sent[index].outcome) = (state, "answer")
            }
            try await store.update(sent)
            let ended = try await store.deliveries(event: "e")
            #expect(ended.map(\.state) == [.cancelled, .failed, .accepted, .retry])
            #expect(ended.map(\.outcome) == ["receipt", "answer", "answer", "answer"])
            #expect(try await store.openDeliveries(limit: 9).map(\.device) == ["z"])
        },
        StoreContract("a clear that failed is no dead letter") { store in
            let clear = PushRecord.clear(event: "e", device: "phone")
            _ = try await store.commit([.init(.sample("e"), [clear])])
            var failed = clear
            failed.state = .failed
            failed.outcome = "http 503"
            try await store.update([failed])
            #expect(try await store.deadLetters(app: "1", reason: nil, after: nil, limit: 10) == [])
            #expect(try await store.deadLetter(app: "1", nid: clear.nid, device: "phone") == nil)
            #expect(try await store.replayDeadLetters(.nids([clear.nid]), app: "1", now: 1, ttl: nil).due == [])
            #expect(try await store.replayDeadLetters(.failed(reason: nil, before: nil), app: "1", now: 1, ttl: nil).due == [])
            #expect(try await store.dismissDeadLetters(.failed(reason: nil, before: nil), app: "1") == 0)
        },
    ]
}

extension PushRecord {
    fileprivate static func clear(event: String, device: String) -> PushRecord {
        var clear = PushRecord.sample(event: event, device: device, state: .due)
        clear.purpose = .clear
        clear.nid = NotificationID.clearing(clear.nid)
        clear.message = PushMessage(
            nid: clear.nid, event: event, kind: .silent, title: nil, body: nil, data: ["type": "clear"], expiresAt: 61_000,
            committedAt: 1_000)
        return clear
    }
}
