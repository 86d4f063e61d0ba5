package import HubCore

/// A game, quiz or order: the thing whose participants are told about events.
package struct Session: Sendable, Equatable {
    /// App id the session belongs to.
    package var app: String
    /// The name its backend gave it; unique in the app. What `{session}` in a channel's name stands for.
    package var id: String
    /// The store's own number, unique over all apps.
    package var number: Int64
    /// Name of its channel definition (`quiz`).
    package var definition: String
    /// Unique in the app while the session lives; compared in upper case.
    package var joinCode: String?
    package var attributes: [String: JSONValue]
    /// Milliseconds since 1970.
    package var createdAt: Int64

    package init(
        app: String, id: String, number: Int64, definition: String, joinCode: String?, attributes: [String: JSONValue],
        createdAt: Int64
    ) {
        self.app = app
        self.id = id
        self.number = number
        self.definition = definition
        self.joinCode = joinCode
        self.attributes = attributes
        self.createdAt = createdAt
    }
}

extension Session {
    /// The numeric `session_id` that clients get: the id its backend gave it where that is a number, else the store's own.
    package var clientNumber: Int64 {
        guard let own = Int64(id), own >= 0, String(own) == id else { return number }
        return own
    }
}

/// A person in a session.
package struct Participant: Sendable, Equatable {
    package var app: String
    /// The session's `id`.
    package var session: String
    /// The identity that presence channels, devices and `{user}` use; unique in the app.
    package var user: String
    /// The store's own number, unique over all apps: what clients get as a numeric `id`.
    package var number: Int64
    package var name: String
    package var email: String?
    package var role: String?
    /// Milliseconds since 1970.
    package var joinedAt: Int64
    /// How a join recognises this participant again; nil: the backend made the participant, and no join finds them.
    package var joinedBy: JoinIdentity?

    package init(
        app: String, session: String, user: String, number: Int64, name: String, email: String?, role: String?, joinedAt: Int64,
        joinedBy: JoinIdentity? = nil
    ) {
        self.app = app
        self.session = session
        self.user = user
        self.number = number
        self.name = name
        self.email = email
        self.role = role
        self.joinedAt = joinedAt
        self.joinedBy = joinedBy
    }
}

package enum DevicePlatform: String, Sendable { case android, ios, web }

/// Who delivers to a device. Separate from the platform: iOS devices may come through FCM.
package enum PushProvider: String, Sendable, CaseIterable { case fcm, apns }

/// Which of Apple's two worlds a device token belongs to. A closed set: no host name ever comes from outside.
package enum APNsEnvironment: String, Sendable { case production, sandbox }

/// An installation of an app, with the token its push gateway knows it by.
package struct Device: Sendable, Equatable {
    package var app: String
    package var user: String
    package var id: String
    package var platform: DevicePlatform
    package var provider: PushProvider
    /// Nil: the device is known, but cannot be reached by push (no token yet, or the gateway called it dead).
    package var token: String?
    /// What the token is: an ordinary one, or a Firebase installation id.
    package var form: TargetForm
    package var environment: APNsEnvironment
    package var locale: String?
    /// The device's time zone by its IANA name, such as `Europe/Berlin`.
    package var timezone: String?
    package var appVersion: String?
    /// False: the person has not allowed notifications.
    package var notifications: Bool
    /// When this very token value was registered, milliseconds since 1970: decides whether a 410 is about it.
    package var registeredAt: Int64
    /// When the app last told its token, the same or another; milliseconds since 1970.
    package var refreshedAt: Int64
    /// When the gateway last accepted a push to this very token in this environment, to within a day; nil: never yet.
    package var lastAcceptedAt: Int64?

    /// - Parameter refreshedAt: nil: with the registration.
    package init(
        app: String, user: String, id: String, platform: DevicePlatform, provider: PushProvider, token: String?, form: TargetForm = .token,
        environment: APNsEnvironment, locale: String? = nil, timezone: String? = nil, appVersion: String? = nil,
        notifications: Bool = true, registeredAt: Int64, refreshedAt: Int64? = nil, lastAcceptedAt: Int64? = nil
    ) {
        self.app = app
        self.user = user
        self.id = id
        self.platform = platform
        self.provider = provider
        self.token = token
        self.form = form
        self.environment = environment
        self.locale = locale
        self.timezone = timezone
        self.appVersion = appVersion
        self.notifications = notifications
        self.registeredAt = registeredAt
        self.refreshedAt = refreshedAt ?? registeredAt
        self.lastAcceptedAt = lastAcceptedAt
    }
}

/// A participant with the devices that could be told by push.
package struct RosterEntry: Sendable, Equatable {
    package var participant: Participant
    package var devices: [Device]

    package init(participant: Participant, devices: [Device]) {
        self.participant = participant
        self.devices = devices
    }
}

/// How a join recognises somebody who has joined before.
package enum JoinIdentity: String, Sendable { case email, device }

/// Sessions, participants and devices: the contract every store fulfils.
///
/// Callable from any thread. What a method returned without throwing is durable. Strings come validated and bounded.
package protocol Directory: Sendable {
    /// Creates the session or replaces its definition, join code and attributes.
    /// - Throws: `DirectoryError.joinCodeTaken` when another living session of the app has the code.
    func putSession(
        app: String, id: String, definition: String, joinCode: String?, attributes: [String: JSONValue]
    ) async throws -> Session
    func session(app: String, id: String) async throws -> Session?
    /// The sessions with this code, at most one of each app, in no particular order.
    /// - Parameter joinCode: in any case; codes are compared in upper case.
    func sessions(joinCode: String) async throws -> [Session]
    /// Removes the session and its participants; devices stay. False when there was none.
    func deleteSession(app: String, id: String) async throws -> Bool

    /// Creates or updates one participant of an existing session. Somebody who joined stays a joiner.
    /// - Throws: `DirectoryError.noSuchSession`, or `.emailTaken` when another participant of the session has the e-mail.
    func putParticipant(
        app: String, session: String, user: String, name: String, email: String?, role: String?
    ) async throws -> Participant
    /// The joining participant: one that joined before by the same `identity`, whose name is then brought up to date; otherwise a
    /// new one whose `user` is its number in decimal.
    /// - Parameters:
    ///   - identity: email: recognises the e-mail without regard to case; device: recognises `installation`.
    ///   - installation: handle of an `InstallationID`; nil: recognises nobody.
    ///   - membersMax: people of the session that a new one may make it; somebody known always gets in.
    /// - Throws: `DirectoryError.emailOfBackend` when the backend made the participant with this e-mail, `.noSuchSession` when the
    ///   session is gone, or was made anew since, `.sessionFull`.
    func join(
        session: Session, name: String, email: String, role: String?, identity: JoinIdentity, installation: String?, membersMax: Int
    ) async throws -> Participant
    /// In how many sessions of the app the user stands; counted up to 2.
    func sessionCount(app: String, user: String) async throws -> Int
    func participant(app: String, session: String, user: String) async throws -> Participant?
    /// In the order of their numbers.
    func participants(app: String, session: String) async throws -> [Participant]
    func deleteParticipant(app: String, session: String, user: String) async throws -> Bool

    /// Creates, replaces and removes devices, in order and in one transaction. `registeredAt` and `lastAcceptedAt` are kept when the
    /// token value is unchanged, the latter also only in the same environment. `writer` says which other rows of the app lose the
    /// token, and which may make room.
    /// - Parameter perUserMax: devices of one user that stay.
    /// - Returns: for each change the device as it is now; nil: removed, or not there.
    /// - Throws: `DirectoryError.tooManyDevices` when no row may make room for one that a participant writes.
    func putDevices(_ changes: [DeviceChange], by writer: DeviceWriter, perUserMax: Int) async throws -> [Device?]
    func device(app: String, user: String, id: String) async throws -> Device?
    /// Where pushes to these devices go at this moment, in their order; nil for a device that there is not. One read for all of them.
    func targets(of devices: [DeviceName]) async throws -> [DeviceTarget?]
    func devices(app: String, user: String) async throws -> [Device]
    /// The newest registration under this handle that has a token, whoever owns it, among rows that an app wrote.
    /// - Parameter handle: of an `InstallationID`.
    func installation(app: String, handle: String) async throws -> Device?
    /// Those of several users in one read, by user; who has none is missing.
    func devices(app: String, users: [String]) async throws -> [String: [Device]]
    func deleteDevice(app: String, user: String, id: String) async throws -> Bool
    /// Forgets a token of the app that a gateway called dead, in every row that has it and told it before `deadSince`
    /// (milliseconds since 1970; nil: the gateway gave no time, and the token goes). The rows stay.
    /// True when the token was removed.
    func removeToken(_ token: String, app: String, provider: PushProvider, deadSince: Int64?) async throws -> Bool

    /// The gateway accepted a push of the app to this token: it is alive, and belongs to this environment.
    /// - Parameter at: milliseconds since 1970.
    func noteAccepted(token: String, app: String, provider: PushProvider, environment: APNsEnvironment, at: Int64) async throws

    /// Removes devices whose token was neither told by its app nor accepted by its gateway since `cutoff` (milliseconds since
    /// 1970), and those that have had none since: at most `limit`.
    /// - Returns: how many.
    func pruneDevices(idleSince cutoff: Int64, limit: Int) async throws -> Int

    /// Everybody in the session with all their devices, newest registration first, in one read.
    func roster(app: String, session: String) async throws -> [RosterEntry]
}

extension Directory {
    /// Creates or replaces one device.
    package func putDevice(_ device: Device, by writer: DeviceWriter = .backend, perUserMax: Int = .max) async throws -> Device {
        try await putDevices([.put(device)], by: writer, perUserMax: perUserMax).first?.flatMap { $0 } ?? device
    }
}

/// The writer of a device row. A new row remembers whether the backend or an app wrote it.
package enum DeviceWriter: Sendable, Equatable {
    /// Takes the token from all other rows that the backend wrote. For one device too many the longest registered one goes.
    case backend
    /// A join, or the bearer of a participant token. Takes the token from the other participants of this session, and from the user's
    /// own rows that an app wrote. Only rows of apps whose token no gateway ever accepted make room.
    case participant(session: String)
    /// An installation that has joined nothing. Takes the token from nobody.
    case installation

    /// Names that the hub gives to devices without an id begin so, and one user has at most `unnamedMax` of them.
    package static let unnamedPrefix = "unnamed"
    package static let unnamedMax = 5
    /// Installations of an app that have joined nothing. For one more the one whose token was told longest ago goes.
    package static let waitingMax = 20_000
}

/// One of several changes of the devices.
package enum DeviceChange: Sendable, Equatable {
    case put(Device)
    case remove(app: String, user: String, id: String)
}

extension Directory {
    /// One look-up after another, for directories in memory.
    package func targets(of devices: [DeviceName]) async throws -> [DeviceTarget?] {
        var targets: [DeviceTarget?] = []
        for name in devices { targets.append(try await device(app: name.app, user: name.user, id: name.id).map(DeviceTarget.init)) }
        return targets
    }
}

/// Which device is meant: ids are unique for each user.
package struct DeviceName: Sendable, Hashable {
    package var app: String
    package var user: String
    package var id: String

    package init(app: String, user: String, id: String) {
        self.app = app
        self.user = user
        self.id = id
    }
}

/// As much of a device as sending needs.
package struct DeviceTarget: Sendable, Equatable {
    package var platform: DevicePlatform
    package var provider: PushProvider
    package var token: String?
    package var form: TargetForm
    package var environment: APNsEnvironment
    /// Whether the app may show notifications.
    package var notifications: Bool
    /// As in `Device`, like the two others.
    package var registeredAt: Int64
    package var refreshedAt: Int64
    package var lastAcceptedAt: Int64?

    package init(
        platform: DevicePlatform, provider: PushProvider, token: String?, form: TargetForm, environment: APNsEnvironment,
        notifications: Bool,
        registeredAt: Int64, refreshedAt: Int64, lastAcceptedAt: Int64?
    ) {
        self.platform = platform
        self.provider = provider
        self.token = token
        self.form = form
        self.environment = environment
        self.notifications = notifications
        self.registeredAt = registeredAt
        self.refreshedAt = refreshedAt
        self.lastAcceptedAt = lastAcceptedAt
    }

    package init(_ device: Device) {
        self.init(
            platform: device.platform, provider: device.provider, token: device.token, form: device.form, environment: device.environment,
            notifications: device.notifications, registeredAt: device.registeredAt, refreshedAt: device.refreshedAt,
            lastAcceptedAt: device.lastAcceptedAt)
    }
}

/// What a store refuses, as opposed to what fails in it.
package enum DirectoryError: Error, Equatable {
    case joinCodeTaken(String)
    case noSuchSession(String)
    case emailTaken
    /// The e-mail is that of a participant whom the backend made.
    case emailOfBackend
    case tooManyDevices
    case sessionFull
}
