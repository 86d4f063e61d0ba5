import HubCore
import HubDelivery
import Testing

extension StoreContract {
    static let apps: [StoreContract] = [
        StoreContract("an app is read as it was put, and a change needs the revision that it was made from") { store in
            let key = AppRecord.Key(key: "k", secret: "s\"ü", expiresAt: nil)
            let put = try #require(
                try await store.putApp(AppRecord(id: "7", keys: [key], settings: ["max_connections": 5, "enabled": false], createdAt: 11)))
            #expect(put.revision > 0)
            #expect(try await store.apps(changedAfter: 0) == [put])
            #expect(try await store.putApp(AppRecord(id: "7", keys: [], createdAt: 12)) == nil)
            var changed = put
            changed.keys = [AppRecord.Key(key: "n", secret: "t"), AppRecord.Key(key: "k", secret: "s", expiresAt: 99)]
            changed.settings = [:]
            let stored = try #require(try await store.putApp(changed))
            #expect(stored.revision > put.revision && stored.keys == changed.keys && stored.settings == [:])
            #expect(try await store.putApp(put) == nil, "somebody has changed it since")
            #expect(try await store.apps(changedAfter: 0) == [stored])
        },
        StoreContract("apps that changed are read in the order of their changes") { store in
            let first = try #require(try await store.putApp(AppRecord(id: "2", keys: [], createdAt: 1)))
            let second = try #require(try await store.putApp(AppRecord(id: "1", keys: [], createdAt: 2)))
            #expect(try await store.apps(changedAfter: 0) == [first, second])
            #expect(try await store.apps(changedAfter: first.revision) == [second])
            let again = try #require(try await store.putApp(first))
            #expect(try await store.apps(changedAfter: second.revision) == [again])
            #expect(try await store.apps(changedAfter: again.revision) == [])
        },
        StoreContract("a removed app leaves its row without keys, and nothing of its own; other apps keep theirs") { store in
            for app in ["7", "8"] {
                _ = try await store.putApp(
                    AppRecord(id: app, keys: [AppRecord.Key(key: "k\(app)", secret: "s")], settings: ["enabled": false], createdAt: 1))
                let session = try await store.makeSession("s", app: app, joinCode: "CODE\(app)")
                for person in 0..<3 { _ = try await store.join(session, "p\(person)@example.com") }
                _ = try await store.putDevice(.sample(user: "u1", app: app, token: "t\(app)"), by: .backend, perUserMax: 10)
                let later = ScheduledPublish(id: "later-\(app)", app: app, deliverAt: 1_000, request: Array("{}".utf8), createdAt: 1)
                try await store.schedule([later], answers: [])
            }
            let remains = try #require(try await store.removeApp(id: "7", at: 50))
            #expect(remains.sessions == 1 && remains.participants == 3 && remains.devices == 1 && remains.scheduled == 1)
            #expect(try await store.removeApp(id: "7", at: 51) == nil)
            #expect(try await store.removeApp(id: "nowhere", at: 51) == nil)
            let rows = try await store.apps(changedAfter: 0)
            #expect(rows.map(\.id) == ["8", "7"] && rows[1].removedAt == 50 && rows[1].keys.isEmpty && rows[1].settings.isEmpty)
            for (app, count) in [("7", 0), ("8", 1)] {
                #expect(try await store.sessions(joinCode: "CODE\(app)").count == count)
                #expect(try await store.devices(app: app, user: "u1").count == count)
                #expect(try await store.scheduled(app: app, after: nil, limit: 9).count == count)
                #expect(try await store.participants(app: app, session: "s").count == 3 * count)
            }
        },
    ]
}
