import HubCore
import HubDefinitions
import HubDelivery
import StoreTesting
import Testing

@testable import HubStorage

@Suite("Rosters that were read lately")
struct RosterCacheTests {
    let folder: TemporaryFolder
    let clock = TestClock()
    let store: SQLiteStore

    init() throws {
        folder = try TemporaryFolder()
        store = try SQLiteStore(path: folder.file("tandem.db"), time: clock)
    }

    private func isKept(_ session: Session) -> Bool { store.rosters.roster(app: session.app, session: session.id) != nil }

    /// The roster, by reading its rows.
    private func read(_ session: Session) async throws -> [RosterEntry] {
        try await SQLiteStore(path: folder.file("tandem.db"), time: clock).roster(app: session.app, session: session.id)
    }

    private func accept(_ token: String) async throws {
        try await store.noteAccepted(token: token, app: "1", provider: .fcm, environment: .sandbox, at: 9)
    }

    @Test("a roster is read once, and again after each change of its people and devices")
    func changes() async throws {
        let session = try await store.makeSession()
        let other = try await store.makeSession("other")
        let ada = try await store.join(session, "ada@example.org")
        let bob = try await store.join(session, "bob@example.org")
        _ = try await store.putDevice(.sample(user: bob.user, id: "pad", token: "t-pad"))
        let changes: [(String, () async throws -> Void)] = [
            ("a device comes", { _ = try await store.putDevice(.sample(user: ada.user)) }),
            ("a device changes", { _ = try await store.putDevice(.sample(user: ada.user, token: "t-new")) }),
            ("a token is accepted", { try await accept("t-new") }),
            ("a token is dead", { _ = try await store.removeToken("t-new", app: "1", provider: .fcm, deadSince: nil) }),
            ("a device goes", { _ = try await store.deleteDevice(app: "1", user: bob.user, id: "pad") }),
            ("somebody is renamed", { _ = try await store.join(session, "ada@example.org", name: "Countess") }),
            ("somebody comes", { _ = try await store.join(session, "eve@example.org") }),
            ("somebody goes", { _ = try await store.deleteParticipant(app: "1", session: session.id, user: bob.user) }),
            ("the session ends", { _ = try await store.deleteSession(app: "1", id: session.id) }),
        ]
        for (what, change) in changes {
            let before = try await store.roster(app: "1", session: session.id)
            #expect(isKept(session), "before \(what)")
            try await change()
            let after = try await store.roster(app: "1", session: session.id)
            #expect(after != before, "\(what)")
            #expect(try await after == read(session), "\(what)")
        }
        #expect(try await store.roster(app: "1", session: other.id).isEmpty)
    }

    @Test("a session is read with its roster, and again after a change of its own")
    func sessions() async throws {
        let session = try await store.makeSession()
        _ = try await store.join(session, "ada@example.org")
        #expect(store.rosters.session(app: "1", id: session.id) == nil)
        _ = try await store.roster(app: "1", session: session.id)
        #expect(store.rosters.session(app: "1", id: session.id) == session)
        _ = try await store.putSession(app: "1", id: session.id, definition: "other", joinCode: nil, attributes: ["level": 2])
        #expect(store.rosters.session(app: "1", id: session.id) == nil)
        let changed = try await store.session(app: "1", id: session.id)
        #expect(changed?.definition == "other" && changed?.attributes == ["level": 2] && changed?.number == session.number)
        _ = try await store.roster(app: "1", session: session.id)
        #expect(try await store.session(app: "1", id: session.id) == changed)
        _ = try await store.deleteSession(app: "1", id: session.id)
        #expect(try await store.session(app: "1", id: session.id) == nil)
        // A session that comes where none was is found at once, also when its empty roster was asked for before.
        _ = try await store.roster(app: "1", session: "late")
        let late = try await store.makeSession("late")
        #expect(try await store.session(app: "1", id: late.id) == late)
    }

    @Test("devices and people of other sessions leave a roster where it is, and so does a write that fails")
    func others() async throws {
        let session = try await store.makeSession()
        let other = try await store.makeSession("other")
        let ada = try await store.join(session, "ada@example.org")
        let bob = try await store.join(other, "bob@example.org")
        _ = try await store.putDevice(.sample(user: bob.user, id: "pad", token: "t-pad"))
        _ = try await store.roster(app: "1", session: session.id)
        _ = try await store.putDevice(.sample(user: bob.user, id: "pad", token: "t-other"))
        _ = try await store.join(other, "bob@example.org", name: "Robert")
        _ = try await store.makeSession("third")
        await #expect(throws: PeopleStoreError.self) {
            _ = try await store.putParticipant(app: "1", session: "none", user: "u", name: "N", email: nil, role: nil)
        }
        #expect(isKept(session))
        #expect(try await store.roster(app: "1", session: session.id).map(\.participant) == [ada])
    }

    @Test("a roster that changed while it was read is not kept")
    func race() async throws {
        let session = try await store.makeSession()
        let version = store.rosters.version
        _ = try await store.join(session, "ada@example.org")
        store.rosters.keep(RosterCache.Roster(), app: "1", session: session.id, version: version)
        #expect(!isKept(session))
    }

    @Test("the roster used longest ago gives way")
    func bounded() async throws {
        let session = try await store.makeSession()
        let rosters = store.rosters
        for number in 0...RosterCache.rostersMax {
            rosters.keep(RosterCache.Roster(), app: "1", session: "\(number)", version: rosters.version)
            _ = rosters.roster(app: "1", session: "0")
        }
        #expect(rosters.roster(app: "1", session: "0") != nil && rosters.roster(app: "1", session: "1") == nil)
        // A stranger's long tokens count by their length.
        let ada = try await store.join(session, "ada@example.org")
        let device = Device.sample(user: ada.user, token: String(repeating: "t", count: 4096))
        let half = RosterCache.Roster(
            entries: Array(repeating: RosterEntry(participant: ada, devices: [device]), count: RosterCache.bytesMax / 2 / 5_000))
        for name in ["a", "b", "c"] { rosters.keep(half, app: "1", session: name, version: rosters.version) }
        #expect(rosters.roster(app: "1", session: "a") == nil && rosters.roster(app: "1", session: "0") == nil)
        #expect(rosters.roster(app: "1", session: "b") != nil && rosters.roster(app: "1", session: "c") != nil)
        let whole = RosterCache.Roster(entries: half.entries + half.entries + half.entries)
        rosters.keep(whole, app: "1", session: "too large", version: rosters.version)
        #expect(rosters.roster(app: "1", session: "too large") == nil)
    }
}
