internal import HubAPI
internal import HubChannels
internal import HubConfiguration
internal import HubCore
internal import HubCrypto
internal import HubDelivery
internal import Logging
internal import PusherProtocol

/// The apps in force: those of the configuration file, which win, and those of the store.
///
/// A change is written first, then becomes a new `AppTable`, and every loop is told to take it over. Keys that expire, and changes of
/// other hubs, come in by `run`.
actor AppService: AppPort {
    private let store: any AppStore
    private let directory: AppDirectory
    private let time: any TimeSource
    private let logger: Logger
    /// Largest event data that the loops have room for, in bytes.
    private let eventDataBytesMax: Int
    /// Tells every loop that the directory has a new table.
    private let announce: @Sendable () -> Void
    private let inbox = Inbox<Void>()
    private let alarm = Alarm()

    private var fileApps: [Configuration.App]
    /// Apps of the store by id, removed ones included.
    private var records: [String: AppRecord] = [:]
    private var revision: Int64 = 0
    /// Milliseconds since 1970 at which the next key in force expires; nil: none does.
    private var nextExpiry: Int64?
    private var isInForce = false

    /// Apps that are not removed, in the store.
    static let appsMax = 10_000
    /// Former keys of an app that may be valid at the same time.
    static let formerKeysMax = 8
    /// Longest sleep in milliseconds: keys expire by the wall clock, which an operator may set.
    private static let sleepMillisecondsMax: Int64 = 30_000
    private static let keyBytes = 10
    private static let secretBytes = 24

    init(
        _ fileApps: [Configuration.App], directory: AppDirectory, store: any AppStore, eventDataBytesMax: Int, time: any TimeSource,
        logger: Logger, announce: @escaping @Sendable () -> Void
    ) {
        self.fileApps = fileApps
        self.directory = directory
        self.store = store
        self.eventDataBytesMax = eventDataBytesMax
        self.time = time
        self.logger = logger
        self.announce = announce
    }

    // MARK: In force

    /// Reads what has changed in the store, and puts it in force.
    func refresh() async throws {
        let read = try await store.apps(changedAfter: revision)
        // This hub's own changes are known already.
        let changed = read.filter { records[$0.id]?.revision != $0.revision }
        for app in read { take(app) }
        // Loops look at all their connections for a new table.
        if !isInForce || !changed.isEmpty || nextExpiry.map({ $0 <= time.wallMilliseconds }) ?? false { putInForce() }
    }

    /// Puts the apps of the configuration file of today in force.
    /// - Returns: the number of apps that differ from the file before.
    func replaceFileApps(_ apps: [Configuration.App]) -> Int {
        let former = Dictionary(fileApps.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        let ids = Set(apps.map(\.id))
        let changed = apps.count { former[$0.id] != $0 } + former.keys.count { !ids.contains($0) }
        for app in apps where (former[app.id]?.webhooks ?? []) != app.webhooks {
            logger.warning("webhooks of an app have changed, and are in force after a restart", metadata: ["app": "\(app.id)"])
        }
        for app in apps where app.eventDataBytesMax > eventDataBytesMax {
            logger.warning(
                "event_data_bytes_max of an app is in force after a restart",
                metadata: ["app": "\(app.id)", "until then": "\(eventDataBytesMax)"])
        }
        fileApps = apps
        putInForce()
        return changed
    }

    /// Calls of `wake` and expiries of keys, until `close`; called once.
    func run() async {
        while await inbox.next() != nil {
            do {
                try await refresh()
            } catch {
                logger.error("apps could not be read from the store; trying again", metadata: ["error": "\(error)"])
            }
            setAlarm()
        }
        alarm.set(at: nil, now: time.wallMilliseconds) {}
    }

    /// Looks into the store soon. Any thread.
    nonisolated func wake() { _ = inbox.offer((), limit: 1) }
    nonisolated func close() { inbox.close() }

    private func setAlarm() {
        let now = time.wallMilliseconds
        alarm.set(at: nextExpiry.map { min($0, now + Self.sleepMillisecondsMax) }, now: now) { [weak self] in self?.wake() }
    }

    private func take(_ app: AppRecord) {
        records[app.id] = app
        revision = max(revision, app.revision)
    }

    private func putInForce() {
        let former = directory.apps
        var table = former.map { app in
            var app = app
            app.isRemoved = true
            return app
        }
        var places = Dictionary(table.map { ($0.id, $0.index) }, uniquingKeysWith: { first, _ in first })
        func add(_ make: (Int) -> App) {
            let app = make(table.count)
            if let place = places[app.id] {
                table[place] = make(place)
            } else {
                places[app.id] = app.index
                table.append(app)
            }
        }
        for app in fileApps { add { self.app(app, index: $0) } }
        let shadows = fileNames
        for record in records.values.sorted(by: { $0.createdAt < $1.createdAt })
        where record.removedAt == nil && !Self.isShadowed(record, by: shadows) {
            add { self.app(record, index: $0) }
        }
        let now = time.wallMilliseconds
        nextExpiry = records.values.flatMap { $0.keys.compactMap(\.expiresAt) }.filter { $0 > now }.min()
        isInForce = true
        directory.replace(AppTable(table))
        announce()
    }

    private func app(_ settings: Configuration.App, index: Int) -> App {
        var app = App(settings, index: index)
        app.eventDataBytesMax = min(app.eventDataBytesMax, eventDataBytesMax)
        // Webhooks are made at the start.
        app.factKinds = directory.apps.first { $0.id == app.id }?.factKinds ?? []
        return app
    }

    private func app(_ record: AppRecord, index: Int) -> App {
        let now = time.wallMilliseconds
        let valid = record.keys.filter { $0.expiresAt.map { $0 > now } ?? true }
        var app = App(
            index: index, id: record.id, secrets: Dictionary(valid.map { ($0.key, $0.secret) }, uniquingKeysWith: { first, _ in first }))
        app.signingKey = record.keys.first?.key
        for (name, value) in record.settings {
            // A later version may have written a value that this one does not know.
            do { try AppSetting(rawValue: name)?.apply(value, to: &app) } catch {
                logger.warning("a stored setting of an app is ignored", metadata: ["app": "\(record.id)", "setting": "\(name)"])
            }
        }
        app.eventDataBytesMax = min(app.eventDataBytesMax, eventDataBytesMax)
        return app
    }

    private struct FileNames {
        var ids: Set<String>
        var keys: Set<String>
    }

    private var fileNames: FileNames {
        FileNames(ids: Set(fileApps.map(\.id)), keys: Set(fileApps.flatMap(\.credentials).map(\.key)))
    }

    private static func isShadowed(_ record: AppRecord, by names: FileNames) -> Bool {
        names.ids.contains(record.id) || record.keys.contains { names.keys.contains($0.key) }
    }

    // MARK: AppPort

    func apps() async throws -> [AppListing] {
        try await refresh()
        let shadows = fileNames
        let ofFile = fileApps.map { settings in
            listing(app(settings, index: 0), .file, keys: settings.credentials.map { ($0.key, nil) }, isShadowed: false)
        }
        let ofStore = records.values.filter { $0.removedAt == nil }.map { listing($0, isShadowed: Self.isShadowed($0, by: shadows)) }
        return (ofFile + ofStore).sorted { ($0.app.id.count, $0.app.id) < ($1.app.id.count, $1.app.id) }
    }

    func addApp(id: String?, settings: [AppSetting: JSONValue]) async throws -> (app: AppListing, secret: String) {
        try await refresh()
        guard records.values.count(where: { $0.removedAt == nil }) < Self.appsMax else {
            throw AppRefusal(409, "the hub has its maximum of \(Self.appsMax) apps: remove one first")
        }
        let id = id ?? nextID
        if fileNames.ids.contains(id) {
            throw AppRefusal(409, "the configuration file has an app \(id): choose another id, or leave it out")
        }
        if let known = records[id] {
            throw AppRefusal(
                409,
                known.removedAt == nil
                    ? "there is an app \(id) already: choose another id, or leave it out"
                    : "an app \(id) was removed, and its id stays taken: choose another one, or leave it out")
        }
        let key = newKey()
        var record = AppRecord(id: id, keys: [key], createdAt: time.wallMilliseconds)
        try change(&record, settings)
        return (try await put(record), key.secret)
    }

    func changeApp(id: String, settings: [AppSetting: JSONValue]) async throws -> AppListing {
        var record = try await stored(id)
        try change(&record, settings)
        return try await put(record)
    }

    func rotateKey(app id: String, keptMilliseconds: Int64) async throws -> (app: AppListing, secret: String) {
        var record = try await stored(id)
        let now = time.wallMilliseconds
        let key = newKey()
        let former = record.keys.map { former in
            var former = former
            former.expiresAt = min(former.expiresAt ?? .max, now + keptMilliseconds)
            return former
        }.filter { $0.expiresAt ?? .max > now }
        guard former.count <= Self.formerKeysMax else {
            throw AppRefusal(409, "the app has \(former.count) valid keys: wait until one expires, or rotate with keep_seconds 0")
        }
        record.keys = [key] + former
        let app = try await put(record)
        wake()
        return (app, key.secret)
    }

    func removeApp(id: String) async throws -> (connections: Int, remains: AppRemains) {
        _ = try await stored(id)
        let connections = directory.app(id: id).map(directory.connectionCount) ?? 0
        guard let remains = try await store.removeApp(id: id, at: time.wallMilliseconds) else { throw AppRefusal.noApp(id) }
        try await refresh()
        logger.notice("an app was removed", metadata: ["app": "\(id)", "connections": "\(connections)"])
        return (connections, remains)
    }

    private func stored(_ id: String) async throws -> AppRecord {
        try await refresh()
        if fileNames.ids.contains(id) {
            throw AppRefusal(409, "the app \(id) is written in the configuration file: change it there, and send the hub a SIGHUP")
        }
        guard let record = records[id], record.removedAt == nil else { throw AppRefusal.noApp(id) }
        return record
    }

    private func change(_ record: inout AppRecord, _ settings: [AppSetting: JSONValue]) throws {
        var trial = App(index: 0, id: record.id, secrets: [:])
        for (setting, value) in settings {
            do throws(AppSetting.Refusal) { try setting.apply(value, to: &trial) } catch { throw AppRefusal(400, error.sentence) }
            record.settings[setting.rawValue] = value
        }
        if settings[.eventDataBytesMax] != nil, trial.eventDataBytesMax > eventDataBytesMax {
            throw AppRefusal(
                400,
                "event_data_bytes_max is at most \(eventDataBytesMax) here, the largest of the configuration file's apps at the start")
        }
    }

    private func put(_ record: AppRecord) async throws -> AppListing {
        guard let stored = try await store.putApp(record) else {
            throw AppRefusal(409, "somebody else changed the app at the same time: try again")
        }
        // Changes of others that came in between keep their order, because a higher revision wins.
        if records[stored.id]?.revision ?? 0 < stored.revision { records[stored.id] = stored }
        putInForce()
        return listing(stored, isShadowed: Self.isShadowed(stored, by: fileNames))
    }

    private func listing(_ record: AppRecord, isShadowed: Bool) -> AppListing {
        let now = time.wallMilliseconds
        let keys = record.keys.filter { $0.expiresAt ?? .max > now }.map { ($0.key, $0.expiresAt) }
        return listing(app(record, index: 0), .store, keys: keys, isShadowed: isShadowed)
    }

    private func listing(_ app: App, _ source: AppListing.Source, keys: [(String, Int64?)], isShadowed: Bool) -> AppListing {
        let connections = isShadowed ? 0 : directory.app(id: app.id).map(directory.connectionCount) ?? 0
        return AppListing(app: app, source: source, keys: keys, connections: connections, isShadowed: isShadowed)
    }

    private var nextID: String {
        let numbers = (fileApps.map(\.id) + records.keys).compactMap { UInt64($0) }.filter { $0 < UInt64.max / 10 }
        return String((numbers.max() ?? 0) + 1)
    }

    private func newKey() -> AppRecord.Key {
        AppRecord.Key(key: Hex.encode(SecureRandom.bytes(Self.keyBytes)), secret: Hex.encode(SecureRandom.bytes(Self.secretBytes)))
    }
}
