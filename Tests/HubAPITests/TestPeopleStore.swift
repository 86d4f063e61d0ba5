import HubCore
import HubDefinitions
import HubDelivery
import HubStorage
import Synchronization

/// The real store, with a switch that breaks it and a place to do something in the middle of a join.
final class TestPeopleStore: PeopleStore {
    struct Failure: Error {
        let path = "/var/lib/tandem/tandem.db"
    }

    private struct State {
        var sessions: [(app: String, id: String)] = []
        var isBroken = false
        var lookUps = 0
        var afterLookUp: (@Sendable () async -> Void)?
    }

    private let store: SQLiteStore
    private let state = Mutex(State())

    init(_ store: SQLiteStore) { self.store = store }

    /// From now on every call fails.
    func breakDown() { state.withLock { $0.isBroken = true } }
    /// Calls of `sessions(joinCode:)`.
    var lookUps: Int { state.withLock { $0.lookUps } }
    /// As if another node had deleted them all.
    func forgetSessions() async {
        for session in state.withLock({ $0.sessions }) { _ = try? await store.deleteSession(app: session.app, id: session.id) }
    }
    /// Runs at the end of each look-up of a join code.
    func afterLookUp(_ work: @escaping @Sendable () async -> Void) { state.withLock { $0.afterLookUp = work } }

    private var working: SQLiteStore {
        get throws { if state.withLock({ $0.isBroken }) { throw Failure() } else { store } }
    }

    func putSession(
        app: String, id: String, definition: String, joinCode: String?, attributes: [String: JSONValue]
    ) async throws -> Session {
        state.withLock { $0.sessions.append((app, id)) }
        return try await working.putSession(app: app, id: id, definition: definition, joinCode: joinCode, attributes: attributes)
    }
    func session(app: String, id: String) async throws -> Session? { try await working.session(app: app, id: id) }
    func sessions(joinCode: String) async throws -> [Session] {
        let found = try await working.sessions(joinCode: joinCode)
        let work = state.withLock { state in
            state.lookUps += 1
            return state.afterLookUp
        }
        await work?()
        return found
    }
    func deleteSession(app: String, id: String) async throws -> Bool { try await working.deleteSession(app: app, id: id) }

    func putParticipant(
        app: String, session: String, user: String, name: String, email: String?, role: String?
    ) async throws -> Participant {
        try await working.putParticipant(app: app, session: session, user: user, name: name, email: email, role: role)
    }
    func join(
        session: Session, name: String, email: String, role: String?, identity: JoinIdentity, installation: String?, membersMax: Int
    ) async throws -> Participant {
        try await working.join(
            session: session, name: name, email: email, role: role, identity: identity, installation: installation, membersMax: membersMax)
    }
    func sessionCount(app: String, user: String) async throws -> Int { try await working.sessionCount(app: app, user: user) }
    func participant(app: String, session: String, user: String) async throws -> Participant? {
        try await working.participant(app: app, session: session, user: user)
    }
    func participants(app: String, session: String) async throws -> [Participant] {
        try await working.participants(app: app, session: session)
    }
    func deleteParticipant(app: String, session: String, user: String) async throws -> Bool {
        try await working.deleteParticipant(app: app, session: session, user: user)
    }
    /// Newest participants first: the contract promises no order here.
    func roster(app: String, session: String) async throws -> [RosterEntry] {
        try await working.roster(app: app, session: session).reversed()
    }

    func putDevices(_ changes: [DeviceChange], by writer: DeviceWriter, perUserMax: Int) async throws -> [Device?] {
        try await working.putDevices(changes, by: writer, perUserMax: perUserMax)
    }
    func device(app: String, user: String, id: String) async throws -> Device? { try await working.device(app: app, user: user, id: id) }
    func targets(of devices: [DeviceName]) async throws -> [DeviceTarget?] { try await working.targets(of: devices) }
    func devices(app: String, user: String) async throws -> [Device] { try await working.devices(app: app, user: user) }
    func devices(app: String, users: [String]) async throws -> [String: [Device]] { try await working.devices(app: app, users: users) }
    func installation(app: String, handle: String) async throws -> Device? { try await working.installation(app: app, handle: handle) }
    func deleteDevice(app: String, user: String, id: String) async throws -> Bool {
        try await working.deleteDevice(app: app, user: user, id: id)
    }
    func removeToken(_ token: String, app: String, provider: PushProvider, deadSince: Int64?) async throws -> Bool {
        try await working.removeToken(token, app: app, provider: provider, deadSince: deadSince)
    }
    func noteAccepted(token: String, app: String, provider: PushProvider, environment: APNsEnvironment, at: Int64) async throws {
        try await working.noteAccepted(token: token, app: app, provider: provider, environment: environment, at: at)
    }
    func pruneDevices(idleSince cutoff: Int64, limit: Int) async throws -> Int {
        try await working.pruneDevices(idleSince: cutoff, limit: limit)
    }
}
