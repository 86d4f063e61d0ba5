import GRDB
package import HubDelivery

extension SQLiteStore {
    /// `Directory.putDevices`: some look-ups per change, all in one transaction.
    package func putDevices(_ changes: [DeviceChange], by writer: DeviceWriter, perUserMax: Int) async throws -> [Device?] {
        if changes.isEmpty { return [] }
        return try await write(rows: changes.count) { db in
            try changes.map { change in
                switch change {
                case .put(let device): return try Self.put(device, by: writer, perUserMax: perUserMax, db)
                case .remove(let app, let user, let id):
                    _ = try Self.delete(db, app: app, user: user, id: id)
                    return nil
                }
            }
        }
    }

    private static func put(_ device: Device, by writer: DeviceWriter, perUserMax: Int, _ db: Database) throws -> Device {
        var device = device
        let old = try Self.device(db, app: device.app, user: device.user, id: device.id)
        if let old, old.token == device.token && old.provider == device.provider {
            device.registeredAt = old.registeredAt
            if old.environment == device.environment { device.lastAcceptedAt = old.lastAcceptedAt }
        }
        if let token = device.token {
            // An accepted token stays accepted under another row.
            device.lastAcceptedAt =
                try device.lastAcceptedAt
                ?? Int64.fetchOne(
                    db.cachedStatement(sql: acceptedSQL),
                    arguments: [device.app, device.provider.rawValue, token, device.environment.rawValue])
            try release(token, of: device, by: writer, db)
        }
        if old == nil, writer == .installation { try makeRoomForWaiting(app: device.app, db) }
        if old == nil { try makeRoom(for: device, by: writer, perUserMax: perUserMax, db) }
        try db.cachedStatement(
            sql: """
                INSERT INTO device
                  (app, user, id, platform, provider, token, form, environment, locale, timezone, app_version, notifications, registered_at,
                   refreshed_at, accepted_at, origin)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (app, user, id) DO UPDATE SET
                  platform = excluded.platform, provider = excluded.provider, token = excluded.token, form = excluded.form,
                  environment = excluded.environment, locale = excluded.locale, timezone = excluded.timezone,
                  app_version = excluded.app_version, notifications = excluded.notifications,
                  registered_at = excluded.registered_at, refreshed_at = excluded.refreshed_at, accepted_at = excluded.accepted_at
                """
        ).execute(arguments: [
            device.app, device.user, device.id, device.platform.rawValue, device.provider.rawValue, device.token, device.form.rawValue,
            device.environment.rawValue, device.locale, device.timezone, device.appVersion, device.notifications,
            device.registeredAt, device.refreshedAt, device.lastAcceptedAt, writer.origin,
        ])
        assert(db.changesCount == 1, "a device was written into \(db.changesCount) rows")
        return device
    }

    /// A shared phone would otherwise show one person's notifications to the next.
    private static func release(_ token: String, of device: Device, by writer: DeviceWriter, _ db: Database) throws {
        let arguments: StatementArguments = [device.app, device.provider.rawValue, token, device.user, device.id]
        switch writer {
        case .backend: try db.cachedStatement(sql: releaseFromBackendSQL).execute(arguments: arguments)
        case .participant(let session):
            try db.cachedStatement(sql: releaseFromRosterSQL).execute(arguments: arguments + [session])
        case .installation: break
        }
    }

    /// Makes room for one more device of the user. Rows without a token are removed first. A participant never displaces a token that a
    /// gateway accepted. The newest unaccepted one goes, so that a stranger who knows an e-mail cannot push out the first phone.
    private static func makeRoom(for device: Device, by writer: DeviceWriter, perUserMax: Int, _ db: Database) throws {
        func makeRoom(among prefix: String, max: Int) throws {
            let own = "app = ? AND user = ? AND substr(id, 1, length(?)) = ?"
            let arguments: StatementArguments = [device.app, device.user, prefix, prefix]
            let count = try Int.fetchOne(db.cachedStatement(sql: "SELECT COUNT(*) FROM device WHERE \(own)"), arguments: arguments) ?? 0
            guard count >= max else { return }
            let choice =
                writer == .backend
                ? "ORDER BY registered_at, id"
                : "AND origin = 'app' AND (token IS NULL OR accepted_at IS NULL) ORDER BY token IS NOT NULL, registered_at DESC, id"
            try db.cachedStatement(
                sql: "DELETE FROM device WHERE rowid IN (SELECT rowid FROM device WHERE \(own) \(choice) LIMIT ?)"
            ).execute(arguments: arguments + [count - max + 1])
            if db.changesCount <= count - max { throw PeopleStoreError.tooManyDevices }
        }
        if writer != .backend, device.id.hasPrefix(DeviceWriter.unnamedPrefix) {
            try makeRoom(among: DeviceWriter.unnamedPrefix, max: DeviceWriter.unnamedMax)
        }
        try makeRoom(among: "", max: perUserMax)
    }

    /// Bounds the rows waiting for an owner, which anybody may write: the one whose token was reported longest ago is removed.
    private static func makeRoomForWaiting(app: String, _ db: Database) throws {
        let count = try Int.fetchOne(db.cachedStatement(sql: waitingCountSQL), arguments: [app]) ?? 0
        guard count >= DeviceWriter.waitingMax else { return }
        try db.cachedStatement(sql: dropWaitingSQL).execute(arguments: [app, count - DeviceWriter.waitingMax + 1])
    }

    /// `Directory.device`: one look-up by key.
    package func device(app: String, user: String, id: String) async throws -> Device? {
        try await read { db in try Self.device(db, app: app, user: user, id: id) }
    }

    /// `Directory.targets`: one look-up by key per name, and no row objects.
    package func targets(of devices: [DeviceName]) async throws -> [DeviceTarget?] {
        if devices.isEmpty { return [] }
        return try await read { db in
            let statement = try RawStatement(
                """
                SELECT platform, provider, token, form, environment, notifications, accepted_at, COALESCE(refreshed_at, registered_at),
                  registered_at
                FROM device
                WHERE app = ?1 AND user = ?2 AND id = ?3
                """, db)
            return try devices.map { name in
                try statement.bind(name.app, at: 1)
                try statement.bind(name.user, at: 2)
                try statement.bind(name.id, at: 3)
                return try statement.row(Self.target)
            }
        }
    }

    private static func target(_ row: RawStatement) throws -> DeviceTarget {
        func value<Value: RawRepresentable<String>>(_ column: CInt, _ name: String) throws(StorageError) -> Value {
            guard let value = row.text(column).flatMap(Value.init(rawValue:)) else {
                throw StorageError(.unreadableRow, "a row of the table `device` has an unknown `\(name)`; repair or delete it")
            }
            return value
        }
        return DeviceTarget(
            platform: try value(0, "platform"), provider: try value(1, "provider"), token: row.text(2), form: try value(3, "form"),
            environment: try value(4, "environment"), notifications: row.number(5) != 0, registeredAt: row.number(8),
            refreshedAt: row.number(7), lastAcceptedAt: row.isNull(6) ? nil : row.number(6))
    }

    /// Newest registration first.
    package func devices(app: String, user: String) async throws -> [Device] {
        try await read { db in
            try Self.devices(db, app: app, user: user)
        }
    }

    /// `Directory.installation`: one look-up in the index of device ids.
    package func installation(app: String, handle: String) async throws -> Device? {
        try await read { db in
            try Row.fetchOne(
                db.cachedStatement(sql: Self.installationSQL), arguments: [app, handle]
            ).map(Self.device(row:))
        }
    }

    /// `Directory.devices`: one look-up per user.
    package func devices(app: String, users: [String]) async throws -> [String: [Device]] {
        if users.isEmpty { return [:] }
        return try await read { db in
            var found: [String: [Device]] = [:]
            for user in users {
                let devices = try Self.devices(db, app: app, user: user)
                if !devices.isEmpty { found[user] = devices }
            }
            return found
        }
    }

    private static func devices(_ db: Database, app: String, user: String) throws -> [Device] {
        try Row.fetchAll(db.cachedStatement(sql: devicesOfUserSQL), arguments: [app, user]).map(device(row:))
    }

    /// `Directory.deleteDevice`: one row by key.
    package func deleteDevice(app: String, user: String, id: String) async throws -> Bool {
        try await write { db in try Self.delete(db, app: app, user: user, id: id) }
    }

    private static func delete(_ db: Database, app: String, user: String, id: String) throws -> Bool {
        try db.cachedStatement(sql: "DELETE FROM device WHERE app = ? AND user = ? AND id = ?").execute(arguments: [app, user, id])
        assert(db.changesCount <= 1, "a device was deleted from \(db.changesCount) rows")
        return db.changesCount > 0
    }

    /// `Directory.pruneDevices`: a walk along the index of refreshes, at most `limit` rows long.
    package func pruneDevices(idleSince cutoff: Int64, limit: Int) async throws -> Int {
        guard limit > 0 else { return 0 }
        return try await write { db in
            try db.cachedStatement(sql: Self.pruneDevicesSQL).execute(arguments: [cutoff, cutoff, limit])
            assert(db.changesCount <= limit, "\(db.changesCount) devices were deleted, at most \(limit) were to be")
            return db.changesCount
        }
    }

    /// `Directory.removeToken`: the rows of one token, by index.
    package func removeToken(_ token: String, app: String, provider: PushProvider, deadSince: Int64?) async throws -> Bool {
        try await write { db in
            // APNs names the time at which it found the token dead. A later registration belongs to a living app.
            try db.cachedStatement(sql: Self.removeTokenSQL).execute(arguments: [app, provider.rawValue, token, deadSince])
            return db.changesCount > 0
        }
    }

    /// `Directory.noteAccepted`: the rows of one token, by index.
    package func noteAccepted(
        token: String, app: String, provider: PushProvider, environment: APNsEnvironment, at: Int64
    ) async throws {
        try await write { db in
            try db.cachedStatement(sql: Self.noteAcceptedSQL)
                .execute(arguments: [environment.rawValue, at, app, provider.rawValue, token])
        }
    }

    private static func device(_ db: Database, app: String, user: String, id: String) throws -> Device? {
        try Row.fetchOne(
            db.cachedStatement(sql: oneDeviceSQL), arguments: [app, user, id]
        ).map(device(row:))
    }

    static let deviceColumns = """
        device.app, device.user, device.id, device.platform, device.provider, device.token, device.environment, device.locale,
        device.notifications, device.registered_at, device.form, device.timezone, device.app_version, device.refreshed_at,
        device.accepted_at
        """

    /// - Parameter row: of `deviceColumns`, read by position: looking up names takes longer than reading all values.
    static func device(row: Row) throws -> Device {
        Device(
            app: row[0], user: row[1], id: row[2],
            platform: try decodeColumn(row, "platform", at: 3, of: "device"),
            provider: try decodeColumn(row, "provider", at: 4, of: "device"), token: row[5],
            form: try decodeColumn(row, "form", at: 10, of: "device"),
            environment: try decodeColumn(row, "environment", at: 6, of: "device"), locale: row[7], timezone: row[11],
            appVersion: row[12], notifications: row[8], registeredAt: row[9], refreshedAt: row[13], lastAcceptedAt: row[14])
    }
}

/// Queries over a table that may have a million rows. Each uses an index, which a test checks.
extension SQLiteStore {
    static let oneDeviceSQL = "SELECT \(deviceColumns) FROM device WHERE app = ? AND user = ? AND id = ?"
    static let devicesOfUserSQL = "SELECT \(deviceColumns) FROM device WHERE app = ? AND user = ? ORDER BY registered_at DESC, id"
    static let installationSQL = """
        SELECT \(deviceColumns) FROM device WHERE app = ? AND id = ? AND token IS NOT NULL AND origin <> 'backend'
        ORDER BY registered_at DESC LIMIT 1
        """
    static let acceptedSQL = """
        SELECT MAX(accepted_at) FROM device WHERE app = ? AND provider = ? AND token = ? AND environment = ?
        """
    static let releaseFromBackendSQL = """
        UPDATE device SET token = NULL
        WHERE app = ? AND provider = ? AND token = ? AND NOT (user = ? AND id = ?) AND origin = 'backend'
        """
    static let releaseFromRosterSQL = """
        UPDATE device SET token = NULL
        WHERE app = ?1 AND provider = ?2 AND token = ?3 AND NOT (user = ?4 AND id = ?5) AND CASE user WHEN ?4 THEN origin = 'app'
          ELSE EXISTS (
            SELECT 1 FROM participant WHERE participant.app = ?1 AND participant.session = ?6 AND participant.user = device.user) END
        """
    static let waitingCountSQL = "SELECT COUNT(*) FROM device WHERE app = ? AND origin = 'waiting'"
    static let dropWaitingSQL = """
        DELETE FROM device WHERE rowid IN (
          SELECT rowid FROM device WHERE app = ? AND origin = 'waiting' ORDER BY refreshed_at LIMIT ?)
        """
    static let removeTokenSQL = """
        UPDATE device SET token = NULL
        WHERE app = ?1 AND provider = ?2 AND token = ?3 AND (?4 IS NULL OR COALESCE(refreshed_at, registered_at) < ?4)
        """
    static let noteAcceptedSQL = "UPDATE device SET environment = ?, accepted_at = ? WHERE app = ? AND provider = ? AND token = ?"
    static let pruneDevicesSQL = """
        DELETE FROM device WHERE rowid IN (
          SELECT rowid FROM device WHERE refreshed_at < ? AND (accepted_at IS NULL OR accepted_at < ?) ORDER BY refreshed_at LIMIT ?)
        """

    /// For tests: SQLite's query plans for devices.
    package func devicePlans() async throws -> [String: [String]] {
        try await plans([
            "device": Self.oneDeviceSQL, "user": Self.devicesOfUserSQL, "release": Self.releaseFromRosterSQL,
            "release by the backend": Self.releaseFromBackendSQL, "dead": Self.removeTokenSQL,
            "accepted": Self.noteAcceptedSQL, "prune": Self.pruneDevicesSQL, "roster": Self.rosterSQL,
            "proven": Self.acceptedSQL, "waiting": Self.waitingCountSQL, "longest waiting": Self.dropWaitingSQL,
            "installation": Self.installationSQL,
        ])
    }
}

extension DeviceWriter {
    /// The column `origin` of rows first written by this writer.
    var origin: String {
        switch self {
        case .backend: "backend"
        case .participant: "app"
        case .installation: "waiting"
        }
    }
}
