import HubCore
import HubDelivery
import Synchronization

/// The `Directory` contract in memory.
final class MemoryDirectory: Directory {
    struct Failure: Error {
        let path = "/var/lib/tandem/tandem.db"
    }

    private struct State {
        var now: Int64
        var lastNumber: Int64 = 40
        var sessions: [Session] = []
        var participants: [Participant] = []
        var joinDevices: [Int64: String] = [:]
        var devices: [Device] = []
        var isBroken = false
        var lookUps = 0
        var afterLookUp: (@Sendable () -> Void)?
    }

    private let state: Mutex<State>

    init(now: Int64) {
        state = Mutex(State(now: now))
    }

    /// From now on every call fails.
    func breakDown() { state.withLock { $0.isBroken = true } }
    /// Calls of `session(joinCode:)`.
    var lookUps: Int { state.withLock { $0.lookUps } }
    /// As if another node had deleted them all.
    func forgetSessions() { state.withLock { $0.sessions = [] } }
    /// Runs at the end of each look-up of a join code.
    func afterLookUp(_ work: @escaping @Sendable () -> Void) { state.withLock { $0.afterLookUp = work } }

    private func use<Result>(_ body: (inout sending State) throws -> sending Result) throws -> Result {
        try state.withLock { state in
            if state.isBroken { throw Failure() }
            return try body(&state)
        }
    }

    func putSession(
        app: String, id: String, definition: String, joinCode: String?, attributes: [String: JSONValue]
    ) async throws -> Session {
        try use { state in
            if let joinCode, state.sessions.contains(where: { $0.joinCode == joinCode && ($0.app, $0.id) != (app, id) }) {
                throw DirectoryError.joinCodeTaken(joinCode)
            }
            if let index = state.sessions.firstIndex(where: { ($0.app, $0.id) == (app, id) }) {
                state.sessions[index].definition = definition
                state.sessions[index].joinCode = joinCode
                state.sessions[index].attributes = attributes
                return state.sessions[index]
            }
            state.lastNumber += 1
            let session = Session(
                app: app, id: id, number: state.lastNumber, definition: definition, joinCode: joinCode, attributes: attributes,
                createdAt: state.now)
            state.sessions.append(session)
            return session
        }
    }

    func session(app: String, id: String) async throws -> Session? {
        try use { state in state.sessions.first { ($0.app, $0.id) == (app, id) } }
    }

    func session(joinCode: String) async throws -> Session? {
        let (found, work) = try use { state in
            state.lookUps += 1
            return (state.sessions.first { $0.joinCode == joinCode.uppercased() }, state.afterLookUp)
        }
        work?()
        return found
    }

    func deleteSession(app: String, id: String) async throws -> Bool {
        try use { state in
            let count = state.sessions.count
            state.sessions.removeAll { ($0.app, $0.id) == (app, id) }
            state.participants.removeAll { ($0.app, $0.session) == (app, id) }
            return state.sessions.count < count
        }
    }

    func putParticipant(
        app: String, session: String, user: String, name: String, email: String?, role: String?
    ) async throws -> Participant {
        try use { state in
            guard state.sessions.contains(where: { ($0.app, $0.id) == (app, session) }) else { throw DirectoryError.noSuchSession(session) }
            let others = state.participants.filter { ($0.app, $0.session) == (app, session) && $0.user != user }
            if let email, others.contains(where: { $0.email?.lowercased() == email.lowercased() }) { throw DirectoryError.emailTaken }
            if let index = state.participants.firstIndex(where: { ($0.app, $0.session, $0.user) == (app, session, user) }) {
                state.participants[index].name = name
                state.participants[index].email = email
                state.participants[index].role = role
                return state.participants[index]
            }
            state.lastNumber += 1
            let participant = Participant(
                app: app, session: session, user: user, number: state.lastNumber, name: name, email: email, role: role, joinedAt: state.now)
            state.participants.append(participant)
            return participant
        }
    }

    func join(
        session: Session, name: String, email: String, role: String?, identity: JoinIdentity, device: String?
    ) async throws -> Participant {
        try use { state in
            guard state.sessions.contains(where: { $0.number == session.number }) else { throw DirectoryError.noSuchSession(session.id) }
            let known = state.participants.firstIndex { participant in
                guard (participant.app, participant.session) == (session.app, session.id) else { return false }
                return switch identity {
                case .email: participant.email?.lowercased() == email.lowercased()
                case .device: device != nil && state.joinDevices[participant.number] == device
                }
            }
            if let known {
                state.participants[known].name = name
                return state.participants[known]
            }
            if state.participants.contains(where: { ($0.app, $0.session) == (session.app, session.id) && $0.email == email && !email.isEmpty }) {
                throw DirectoryError.emailTaken
            }
            state.lastNumber += 1
            let participant = Participant(
                app: session.app, session: session.id, user: String(state.lastNumber), number: state.lastNumber, name: name, email: email.isEmpty ? nil : email,
                role: role, joinedAt: state.now)
            state.participants.append(participant)
            if identity == .device, let device { state.joinDevices[participant.number] = device }
            return participant
        }
    }

    func participant(app: String, session: String, user: String) async throws -> Participant? {
        try use { state in state.participants.first { ($0.app, $0.session, $0.user) == (app, session, user) } }
    }

    func participants(app: String, session: String) async throws -> [Participant] {
        try use { state in state.participants.filter { ($0.app, $0.session) == (app, session) } }
    }

    func deleteParticipant(app: String, session: String, user: String) async throws -> Bool {
        try use { state in
            let count = state.participants.count
            state.participants.removeAll { ($0.app, $0.session, $0.user) == (app, session, user) }
            return state.participants.count < count
        }
    }

    func putDevices(_ changes: [DeviceChange], perUserMax: Int) async throws -> [Device?] {
        try use { state in
            changes.map { change in
                switch change {
                case .put(let device):
                    let kept = Self.put(device, &state)
                    while true {
                        let own = state.devices.filter { ($0.app, $0.user) == (device.app, device.user) }
                        guard own.count > perUserMax,
                            let oldest = own.filter({ $0.id != device.id }).min(by: { ($0.registeredAt, $0.id) < ($1.registeredAt, $1.id) })
                        else { return kept }
                        state.devices.removeAll { $0 == oldest }
                    }
                case .remove(let app, let user, let id):
                    state.devices.removeAll { ($0.app, $0.user, $0.id) == (app, user, id) }
                    return nil
                }
            }
        }
    }

    private static func put(_ device: Device, _ state: inout State) -> Device {
        var device = device
        let old = state.devices.first { ($0.app, $0.user, $0.id) == (device.app, device.user, device.id) }
        if let old, old.token == device.token, old.provider == device.provider {
            device.registeredAt = old.registeredAt
            if old.environment == device.environment { device.lastAcceptedAt = old.lastAcceptedAt }
        }
        state.devices.removeAll { ($0.app, $0.user, $0.id) == (device.app, device.user, device.id) }
        for index in state.devices.indices
        where device.token != nil && state.devices[index].token == device.token && state.devices[index].provider == device.provider {
            state.devices[index].token = nil
        }
        state.devices.append(device)
        return device
    }

    func devices(app: String, users: [String]) async throws -> [String: [Device]] {
        try use { state in
            Dictionary(grouping: state.devices.filter { $0.app == app && users.contains($0.user) }, by: \.user)
        }
    }

    func pruneDevices(idleSince cutoff: Int64, limit: Int) async throws -> Int { 0 }

    func device(app: String, user: String, id: String) async throws -> Device? {
        try use { state in state.devices.first { ($0.app, $0.user, $0.id) == (app, user, id) } }
    }

    func devices(app: String, user: String) async throws -> [Device] {
        try use { state in state.devices.filter { ($0.app, $0.user) == (app, user) }.sorted { $0.registeredAt > $1.registeredAt } }
    }

    func installation(app: String, id: String) async throws -> Device? {
        try use { state in
            state.devices.filter { ($0.app, $0.id) == (app, id) && $0.token != nil }.max { $0.registeredAt < $1.registeredAt }
        }
    }

    func deleteDevice(app: String, user: String, id: String) async throws -> Bool {
        try use { state in
            let count = state.devices.count
            state.devices.removeAll { ($0.app, $0.user, $0.id) == (app, user, id) }
            return state.devices.count < count
        }
    }

    func noteAccepted(token: String, provider: PushProvider, environment: APNsEnvironment, at: Int64) async throws {}

    func removeToken(_ token: String, provider: PushProvider, deadSince: Int64?) async throws -> Bool { false }

    /// Newest participants first: the contract promises no order here.
    func roster(app: String, session: String) async throws -> [RosterEntry] {
        try use { state in
            state.participants.filter { ($0.app, $0.session) == (app, session) }.reversed().map { participant in
                RosterEntry(participant: participant, devices: state.devices.filter { ($0.app, $0.user) == (app, participant.user) })
            }
        }
    }
}
