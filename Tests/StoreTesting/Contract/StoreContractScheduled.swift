import HubCore
import HubDelivery
import Testing

extension StoreContract {
    static let scheduled: [StoreContract] = [
        StoreContract("scheduled publishes are read as they were written, when they are due, the earliest first") { store in
            #expect(try await store.nextScheduledAt() == nil)
            let late = ScheduledPublish.sample("late", deliverAt: 300)
            var soon = ScheduledPublish.sample("soon", app: "2", deliverAt: 100)
            soon.idempotencyKey = "key"
            try await store.schedule([late, soon, .sample("same", deliverAt: 100)], answers: [.sample("k")])
            #expect(try await store.nextScheduledAt() == 100)
            #expect(try await store.dueScheduled(now: 99, limit: 10) == [])
            #expect(try await store.dueScheduled(now: 100, limit: 10) == [.sample("same", deliverAt: 100), soon])
            #expect(try await store.dueScheduled(now: 1_000, limit: 1).map(\.id) == ["same"])
            #expect(try await store.dueScheduled(now: 1_000, limit: 0) == [])
            #expect(try await store.dueScheduled(now: 1_000, limit: 10).last == late)
            #expect(try await store.scheduled(app: "2", id: "soon") == soon)
            #expect(try await store.scheduled(app: "1", id: "soon") == nil)
            #expect(try await store.answer(app: "1", key: "k", since: 0) != nil)
        },
        StoreContract("an app's waiting publishes are listed in pages") { store in
            try await store.schedule((0..<7).map { .sample("s\($0)", deliverAt: Int64($0 / 3)) } + [.sample("x", app: "2")], answers: [])
            _ = try await store.cancelScheduled(app: "1", id: "s1", now: 5)
            var (found, last): ([String], ScheduledPublish?) = ([], nil)
            repeat {
                let page = try await store.scheduled(app: "1", after: last.map { ($0.deliverAt, $0.id) }, limit: 2)
                found += page.map(\.id)
                last = page.last
            } while last != nil && found.count < 100
            #expect(found == ["s0", "s2", "s3", "s4", "s5", "s6"])
        },
        StoreContract("only what waits can be cancelled, and its request is forgotten") { store in
            try await store.schedule([.sample("s"), .sample("f")], answers: [])
            #expect(try await store.cancelScheduled(app: "2", id: "s", now: 5) == nil)
            #expect(try await store.cancelScheduled(app: "1", id: "unknown", now: 5) == nil)
            #expect(try await store.cancelScheduled(app: "1", id: "s", now: 5) == .waiting)
            #expect(try await store.cancelScheduled(app: "1", id: "s", now: 6) == .cancelled)
            try await store.failScheduled(id: "s", outcome: "no", now: 7)
            let cancelled = try await store.scheduled(app: "1", id: "s")
            #expect(cancelled?.state == .cancelled && cancelled?.endedAt == 5 && cancelled?.request == [] && cancelled?.outcome == nil)
            try await store.failScheduled(id: "f", outcome: "there is no session", now: 7)
            #expect(try await store.cancelScheduled(app: "1", id: "f", now: 8) == .failed)
            #expect(try await store.scheduled(app: "1", id: "f")?.outcome == "there is no session")
            #expect(try await store.dueScheduled(now: .max, limit: 10) == [])
            #expect(try await store.nextScheduledAt() == nil)
        },
        StoreContract("a scheduled publish ends with the commit of its events, and can be taken once") { store in
            try await store.schedule([.sample("s")], answers: [])
            let take = ScheduledTake(id: "s", at: 70, events: ["e1", "e2"])
            let committed = try await store.commit(
                [.init(.sample("e1")), .init(.sample("e2", channel: "c"))], answers: [.sample("k")], scheduled: [take])
            #expect(committed.map(\.id) == ["e1", "e2"])
            let ended = try await store.scheduled(app: "1", id: "s")
            #expect(ended?.state == .published && ended?.endedAt == 70 && ended?.outcome == "e1,e2" && ended?.request == [])
            #expect(try await store.cancelScheduled(app: "1", id: "s", now: 80) == .published)
            await #expect(throws: ScheduleError.notWaiting(["s"])) {
                _ = try await store.commit([.init(.sample("e3"))], answers: [.sample("k2")], scheduled: [take])
            }
            #expect(try await store.event(id: "e3") == nil)
            #expect(try await store.answer(app: "1", key: "k2", since: 0) == nil)
        },
        StoreContract("a commit names all that do not wait, ends none, and can be made again without them") { store in
            try await store.schedule(["a", "b", "c"].map { .sample($0) }, answers: [])
            _ = try await store.cancelScheduled(app: "1", id: "b", now: 5)
            let takes = ["a", "b", "x"].map { ScheduledTake(id: $0, at: 9, events: []) }
            await #expect(throws: ScheduleError.notWaiting(["b", "x"])) {
                _ = try await store.commit([.init(.sample("e1"))], answers: [], scheduled: takes)
            }
            #expect(try await store.dueScheduled(now: .max, limit: 10).map(\.id) == ["a", "c"])
            _ = try await store.commit([.init(.sample("e1"))], answers: [], scheduled: [takes[0]])
            #expect(try await store.dueScheduled(now: .max, limit: 10).map(\.id) == ["c"])
            // A publish without a policy has no event.
            _ = try await store.commit([], answers: [], scheduled: [ScheduledTake(id: "c", at: 9, events: [])])
            #expect(try await store.scheduled(app: "1", id: "c")?.outcome == "")
        },
        StoreContract("a commit that fails leaves the scheduled publish waiting") { store in
            try await store.schedule([.sample("s")], answers: [])
            _ = try await store.commit([.init(.sample("taken"))])
            await #expect(throws: (any Error).self) {
                _ = try await store.commit(
                    [.init(.sample("taken"))], answers: [], scheduled: [ScheduledTake(id: "s", at: 1, events: ["taken"])])
            }
            #expect(try await store.dueScheduled(now: .max, limit: 10) == [.sample("s")])
        },
        StoreContract("of a hundred takes and a cancellation at once exactly one wins") { store in
            try await store.schedule([.sample("s")], answers: [])
            let wins = try await withThrowingTaskGroup(of: Int.self) { group in
                for index in 0..<100 {
                    group.addTask {
                        if index == 50 { return try await store.cancelScheduled(app: "1", id: "s", now: 1) == .waiting ? 1 : 0 }
                        do {
                            _ = try await store.commit(
                                [.init(.sample("e\(index)"))], answers: [],
                                scheduled: [ScheduledTake(id: "s", at: 1, events: ["e\(index)"])])
                            return 1
                        } catch is ScheduleError { return 0 }
                    }
                }
                return try await group.reduce(0, +)
            }
            #expect(wins == 1)
            let history = try await store.history(app: "1", channel: "presence-game-7", after: 0, limit: 200)
            #expect(history.map(\.id).joined() == (try await store.scheduled(app: "1", id: "s")?.outcome ?? ""))
        },
        StoreContract("an app has a bounded number of waiting publishes, and one more is refused with its answer") { store in
            let max = ScheduledPublish.waitingMax
            try await store.schedule((0..<max).map { .sample("s\($0)") }, answers: [])
            await #expect(throws: ScheduleError.full(app: "1")) { try await store.schedule([.sample("more")], answers: [.sample("k")]) }
            #expect(try await store.scheduled(app: "1", id: "more") == nil)
            #expect(try await store.answer(app: "1", key: "k", since: 0) == nil)
            try await store.schedule([.sample("other", app: "2")], answers: [])
            _ = try await store.cancelScheduled(app: "1", id: "s0", now: 1)
            try await store.schedule([.sample("more")], answers: [])
        },
        StoreContract("pruning removes scheduled publishes that ended before the time, in steps, and none that waits") { store in
            try await store.schedule((0..<5).map { .sample("s\($0)", deliverAt: 1) } + [.sample("waits", deliverAt: 1)], answers: [])
            for index in 0..<5 { _ = try await store.cancelScheduled(app: "1", id: "s\(index)", now: Int64(10 + index)) }
            #expect(try await store.prune(before: 14, limit: 3) == 3)
            #expect(try await store.scheduled(app: "1", id: "s2") == nil)
            #expect(try await store.prune(before: 14, limit: 3) == 1)
            #expect(try await store.prune(before: 14, limit: 3) == 0)
            #expect(try await store.scheduled(app: "1", id: "s4")?.state == .cancelled)
            #expect(try await store.scheduled(app: "1", id: "waits")?.state == .waiting)
        },
    ]
}

extension ScheduledPublish {
    package static func sample(_ id: String, app: String = "1", deliverAt: Int64 = 1_000) -> ScheduledPublish {
        ScheduledPublish(id: id, app: app, deliverAt: deliverAt, request: [0, 255, 7], createdAt: 50)
    }
}
