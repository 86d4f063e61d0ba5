import GRDB
import HubDelivery
import StoreTesting
import Testing

@testable import HubStorage

/// Migration of sessions, participants and devices that earlier versions wrote.
@Suite("Owners of rows of earlier versions")
struct OwnerMigrationTests {
    private static let secret = "3f6c1f0e-7a51-4b7e-9a3e-0d7c2b1a5e10"

    @Test("joiners stay joiners, secret ids become handles, and one app's codes and tokens leave another's alone")
    func owners() async throws {
        let folder = try TemporaryFolder()
        let former = try DatabaseQueue(path: folder.file())
        try SQLiteMigrations.migrator.migrate(former, upTo: "leases")
        try await former.write { db in
            try db.execute(
                sql: """
                    INSERT INTO session VALUES (3, '1', 'gone', 'quiz', NULL, '{}', 1), (2, '1', 's', 'quiz', 'CODE', '{}', 1);
                    DELETE FROM session WHERE number = 3;
                    INSERT INTO participant (number, app, session, user, name, email, email_key, device, joined_at) VALUES
                      (5, '1', 's', '5', 'Ada', 'a@x.y', 'a@x.y', NULL, 1), (6, '1', 's', '6', 'Ben', 'b@x.y', 'b@x.y', '\(Self.secret)', 1),
                      (7, '1', 's', 'u9', 'Nina', 'n@x.y', 'n@x.y', NULL, 1), (8, '1', 's', '8', 'Cy', NULL, NULL, 'phone', 1);
                    INSERT INTO device (app, user, id, platform, provider, token, environment, notifications, registered_at, refreshed_at) VALUES
                      ('1', '6', '\(Self.secret)', 'android', 'fcm', 't6', 'production', 1, 1, 1),
                      ('1', '5', 'unnamed-android', 'android', 'fcm', 't5', 'production', 1, 1, 1),
                      ('1', 'u9', '\(Self.secret)', 'android', 'fcm', 't9', 'production', 1, 1, 1),
                      ('1', 'client:\(Self.secret)', '\(Self.secret)', 'android', 'fcm', 'tc', 'production', 1, 1, 1);
                    """)
        }
        try former.close()
        let store = try SQLiteStore(path: folder.file(), time: TestClock())
        let installation = try #require(InstallationID(Self.secret))
        let session = try #require(try await store.sessions(joinCode: "code").first)
        #expect(try await store.participants(app: "1", session: "s").map(\.joinedBy) == [.email, .device, nil, .device])
        #expect(try await store.join(session, "A@x.y").number == 5)
        #expect(try await store.join(session, device: installation.handle).number == 6)
        #expect(try await store.join(session, device: "phone").number != 8)
        await #expect(throws: PeopleStoreError.emailOfBackend) { _ = try await store.join(session, "n@x.y") }
        #expect(try await store.devices(app: "1", user: "6").map(\.id) == [installation.handle])
        #expect(try await store.devices(app: "1", user: "u9").map(\.id) == [Self.secret])
        #expect(try await store.devices(app: "1", user: installation.owner).map(\.id) == [installation.handle])
        #expect(try await store.installation(app: "1", handle: installation.handle)?.token != "t9")
        // Numbers of ended sessions are never given again, and participants still go with their session.
        #expect(try await store.makeSession("next", app: "2", joinCode: "code").number == 4)
        #expect(try await store.deleteSession(app: "1", id: "s"))
        #expect(try await store.participants(app: "1", session: "s") == [])
        try await store.close()
    }

    @Test("installations that wait for a game have a bound in total, and one more takes the place of the one that waits longest")
    func waiting() async throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file(), time: TestClock())
        try await store.write { db in
            try db.execute(
                sql: """
                    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
                    INSERT INTO device (app, user, id, platform, provider, token, environment, notifications, registered_at, refreshed_at, origin)
                    SELECT '1', 'client:' || i, 'dev_' || i, 'android', 'fcm', 't' || i, 'production', 1, i, i, 'waiting' FROM n
                    """, arguments: [DeviceWriter.waitingMax - 1])
        }
        func put(_ number: Int) async throws {
            _ = try await store.putDevice(
                .sample(user: "client:n\(number)", id: "dev_n\(number)", token: "n\(number)", registeredAt: 1_000_000), by: .installation)
        }
        func isThere(_ user: String) async throws -> Bool { try await !store.devices(app: "1", user: user).isEmpty }
        try await put(1)
        #expect(try await isThere("client:1"))
        try await put(2)
        #expect(try await !isThere("client:1"))
        #expect(try await isThere("client:2"))
        // A known installation removes no other.
        try await put(2)
        #expect(try await isThere("client:2"))
        try await store.close()
    }
}
