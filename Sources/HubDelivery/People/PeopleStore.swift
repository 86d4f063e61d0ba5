package import HubCore
package import HubDefinitions

/// A participant with all their devices.
package struct RosterEntry: Sendable, Equatable {
    /// The participant.
    package var participant: Participant
    /// The participant's devices, newest registration first.
    package var devices: [Device]

    /// An entry of a roster.
    package init(participant: Participant, devices: [Device]) {
        self.participant = participant
        self.devices = devices
    }
}

/// Sessions, participants and devices: the contract of every store.
///
/// Callable from any thread. Changes are durable once the method has returned without throwing. Strings come validated and bounded.
package protocol PeopleStore: Sendable {
    /// Creates the session or replaces its definition, join code and attributes.
    /// - Throws: `PeopleStoreError.joinCodeTaken` if another living session of the app has the code.
    func putSession(
        app: String, id: String, definition: String, joinCode: String?, attributes: [String: JSONValue]
    ) async throws -> Session
    func session(app: String, id: String) async throws -> Session?
    /// The sessions with this code, at most one per app, in no particular order.
    /// - Parameter joinCode: in any case; codes are compared in upper case.
    func sessions(joinCode: String) async throws -> [Session]
    /// Removes the session and its participants; devices stay.
    /// - Returns: whether the session existed.
    func deleteSession(app: String, id: String) async throws -> Bool

    /// Creates or updates one participant of an existing session. A participant who joined still counts as one who joined.
    /// - Throws: `PeopleStoreError.noSuchSession`, or `.emailTaken` if another participant of the session has the e-mail.
    func putParticipant(
        app: String, session: String, user: String, name: String, email: String?, role: String?
    ) async throws -> Participant
    /// The joining participant. A participant who joined before is recognised by `identity`, and gets the new name. Otherwise a new one is
    /// made, whose `user` is its number in decimal.
    /// - Parameters:
    ///   - identity: `email` recognises the e-mail without regard to case, `device` recognises `installation`.
    ///   - installation: handle of an `InstallationID`; nil recognises nobody.
    ///   - membersMax: most people of the session with a new one; known participants always get in.
    /// - Throws: `PeopleStoreError.emailOfBackend` if the backend made the participant with this e-mail, `.noSuchSession` if the session is
    ///   gone or was made anew since, `.sessionFull`.
    func join(
        session: Session, name: String, email: String, role: String?, identity: JoinIdentity, installation: String?, membersMax: Int
    ) async throws -> Participant
    /// Number of the app's sessions in which the user takes part, counted up to 2.
    func sessionCount(app: String, user: String) async throws -> Int
    func participant(app: String, session: String, user: String) async throws -> Participant?
    /// The session's participants in the order of their numbers.
    func participants(app: String, session: String) async throws -> [Participant]
    func deleteParticipant(app: String, session: String, user: String) async throws -> Bool

    /// Creates, replaces and removes devices, in order and in one transaction.
    ///
    /// An unchanged token value keeps `registeredAt`, and in the same environment also `lastAcceptedAt`. `writer` decides which other rows
    /// of the app lose the token, and which may make room.
    /// - Parameter perUserMax: most devices of one user afterwards.
    /// - Returns: for each change the device as it is now; nil if removed or not there.
    /// - Throws: `PeopleStoreError.tooManyDevices` if no row may make room for a participant's device.
    func putDevices(_ changes: [DeviceChange], by writer: DeviceWriter, perUserMax: Int) async throws -> [Device?]
    func device(app: String, user: String, id: String) async throws -> Device?
    /// Present targets of these devices, in their order, in one read; nil for an unknown device.
    func targets(of devices: [DeviceName]) async throws -> [DeviceTarget?]
    func devices(app: String, user: String) async throws -> [Device]
    /// The newest registration with a token under this handle, whoever owns it, among rows that an app wrote.
    /// - Parameter handle: of an `InstallationID`.
    func installation(app: String, handle: String) async throws -> Device?
    /// Devices of several users in one read, by user; users without devices are missing.
    func devices(app: String, users: [String]) async throws -> [String: [Device]]
    func deleteDevice(app: String, user: String, id: String) async throws -> Bool
    /// Removes a token that a gateway called dead from every row of the app that told it before `deadSince`. The rows stay.
    /// - Parameter deadSince: milliseconds since 1970; nil if the gateway gave no time, so that all rows lose the token.
    /// - Returns: whether the token was removed.
    func removeToken(_ token: String, app: String, provider: PushProvider, deadSince: Int64?) async throws -> Bool

    /// Notes that the gateway accepted a push of the app to this token, which is therefore alive and of this environment.
    /// - Parameter at: milliseconds since 1970.
    func noteAccepted(token: String, app: String, provider: PushProvider, environment: APNsEnvironment, at: Int64) async throws

    /// Removes at most `limit` devices that are idle: without a token, or with one that neither app nor gateway has confirmed.
    /// - Parameter cutoff: milliseconds since 1970; a device is idle if nothing happened since.
    /// - Returns: number of removed devices.
    func pruneDevices(idleSince cutoff: Int64, limit: Int) async throws -> Int

    /// Everybody in the session with all their devices, newest registration first, in one read.
    func roster(app: String, session: String) async throws -> [RosterEntry]
}

extension PeopleStore {
    /// Creates or replaces one device, as `putDevices`.
    package func putDevice(_ device: Device, by writer: DeviceWriter = .backend, perUserMax: Int = .max) async throws -> Device {
        try await putDevices([.put(device)], by: writer, perUserMax: perUserMax).first?.flatMap { $0 } ?? device
    }

    /// One look-up per device, for directories in memory.
    package func targets(of devices: [DeviceName]) async throws -> [DeviceTarget?] {
        var targets: [DeviceTarget?] = []
        for name in devices { targets.append(try await device(app: name.app, user: name.user, id: name.id).map(DeviceTarget.init)) }
        return targets
    }
}

/// The writer of a device row. A new row remembers whether the backend or an app wrote it.
package enum DeviceWriter: Sendable, Equatable {
    /// The backend. It takes the token from all other rows that the backend wrote; for one device too many the longest registered one is
    /// removed.
    case backend
    /// A join, or the bearer of a participant token. It takes the token from the session's other participants, and from the user's own rows
    /// that an app wrote. Only rows of apps whose token no gateway ever accepted make room.
    case participant(session: String)
    /// An installation that has joined nothing; it takes the token from nobody.
    case installation

    /// Prefix of the names that the hub gives to devices without an id.
    package static let unnamedPrefix = "unnamed"
    /// Most devices of one user with a name that the hub gave.
    package static let unnamedMax = 5
    /// Most installations of an app that have joined nothing. For one more, the one whose token was told longest ago is removed.
    package static let waitingMax = 20_000
}

/// A change among several of the devices.
package enum DeviceChange: Sendable, Equatable {
    case put(Device)
    case remove(app: String, user: String, id: String)
}

/// Refusals of a store, as opposed to failures.
package enum PeopleStoreError: Error, Equatable {
    case joinCodeTaken(String)
    case noSuchSession(String)
    case emailTaken
    /// The e-mail belongs to a participant whom the backend made.
    case emailOfBackend
    case tooManyDevices
    case sessionFull
}
