package import HubDelivery

extension PostgresStore {
    /// `PeopleStore.putDevices`: some look-ups per change, all in one transaction.
    package func putDevices(_ changes: [DeviceChange], by writer: DeviceWriter, perUserMax: Int) async throws -> [Device?] {
        if changes.isEmpty { return [] }
        let keys = Self.keys(of: changes)
        return try await write(rows: changes.count) { tx in
            // All locks are taken at once and in one order, so that two hubs' calls do not wait for each other.
            tx.queue(
                """
                SELECT pg_advisory_xact_lock(k) FROM
                  (SELECT DISTINCT hashtextextended(w, 0) AS k FROM unnest($1::text[]) AS w ORDER BY k) AS l
                """, [.texts(keys)])
            return try changes.map { change in
                switch change {
                case .put(let device): return try Self.put(device, by: writer, perUserMax: perUserMax, tx)
                case .remove(let app, let user, let id):
                    try Self.delete(app: app, user: user, id: id, tx)
                    return nil
                }
            }
        }
    }

    /// `PeopleStore.device`: one look-up by key.
    package func device(app: String, user: String, id: String) async throws -> Device? {
        try await read { tx in try Self.device(app: app, user: user, id: id, tx) }
    }

    /// `PeopleStore.targets`: one query for all.
    package func targets(of devices: [DeviceName]) async throws -> [DeviceTarget?] {
        if devices.isEmpty { return [] }
        return try await read { tx in
            let rows = try tx.query(
                """
                SELECT w.place, \(Self.columns)
                FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS w (app, user_id, id, place)
                JOIN tandem.device d ON d.app = w.app AND d.user_id = w.user_id AND d.id = w.id
                """, [.texts(devices.map(\.app)), .texts(devices.map(\.user)), .texts(devices.map(\.id))])
            var targets: [DeviceTarget?] = Array(repeating: nil, count: devices.count)
            for index in 0..<rows.count { targets[Int(rows[index].int("place")) - 1] = DeviceTarget(try Self.device(rows[index])) }
            return targets
        }
    }

    /// `PeopleStore.devices`: newest registration first.
    package func devices(app: String, user: String) async throws -> [Device] {
        try await read { tx in try Self.devices(app: app, users: [user], tx)[user] ?? [] }
    }

    /// `PeopleStore.installation`: one look-up in the index of device ids.
    package func installation(app: String, handle: String) async throws -> Device? {
        try await read { tx in
            try tx.query(
                """
                SELECT \(Self.columns) FROM tandem.device d WHERE d.app = $1 AND d.id = $2 AND d.token IS NOT NULL AND d.origin <> 'backend'
                ORDER BY d.registered_at DESC LIMIT 1
                """, [.text(app), .text(handle)]
            ).first.map(Self.device)
        }
    }

    /// `PeopleStore.devices`: one query for all users.
    package func devices(app: String, users: [String]) async throws -> [String: [Device]] {
        if users.isEmpty { return [:] }
        return try await read(within: PostgresLink.callMax + PostgresLink.perRow * users.count) { tx in
            try Self.devices(app: app, users: users, tx)
        }
    }

    /// `PeopleStore.deleteDevice`: one row by key.
    package func deleteDevice(app: String, user: String, id: String) async throws -> Bool {
        try await write { tx in try Self.delete(app: app, user: user, id: id, tx) }
    }

    /// `PeopleStore.pruneDevices`: a walk along the index of refreshes, at most `limit` rows long.
    package func pruneDevices(idleSince cutoff: Int64, limit: Int) async throws -> Int {
        guard limit > 0 else { return 0 }
        return try await write { tx in
            // The condition stands twice: a device that another hub refreshes meanwhile is looked at again, and stays.
            try tx.query(
                """
                DELETE FROM tandem.device WHERE (app, user_id, id) IN (
                  SELECT app, user_id, id FROM tandem.device WHERE refreshed_at < $1 AND (accepted_at IS NULL OR accepted_at < $1)
                  ORDER BY refreshed_at LIMIT $2)
                  AND refreshed_at < $1 AND (accepted_at IS NULL OR accepted_at < $1)
                """, [.int(cutoff), .int(limit)]
            ).written
        }
    }

    /// `PeopleStore.removeToken`: the rows of one token, by index.
    package func removeToken(_ token: String, app: String, provider: PushProvider, deadSince: Int64?) async throws -> Bool {
        try await write { tx in
            // APNs names the time at which it found the token dead. A later registration belongs to a living app.
            try tx.query(
                """
                UPDATE tandem.device SET token = NULL
                WHERE app = $1 AND provider = $2 AND token = $3 AND ($4::bigint IS NULL OR coalesce(refreshed_at, registered_at) < $4)
                """, [.text(app), .text(provider.rawValue), .text(token), .int(deadSince)]
            ).written > 0
        }
    }

    /// `PeopleStore.noteAccepted`: the rows of one token, by index.
    package func noteAccepted(
        token: String, app: String, provider: PushProvider, environment: APNsEnvironment, at: Int64
    ) async throws {
        try await write { tx in
            _ = try tx.query(
                "UPDATE tandem.device SET environment = $1, accepted_at = $2 WHERE app = $3 AND provider = $4 AND token = $5",
                [.text(environment.rawValue), .int(at), .text(app), .text(provider.rawValue), .text(token)])
        }
    }

    // MARK: Inside a transaction

    /// Names of the locks under which the devices of one person, and the rows of one token, change one after another.
    private static func keys(of changes: [DeviceChange]) -> [String] {
        changes.flatMap { change -> [String] in
            guard case .put(let device) = change else { return [] }
            let user = "tandem.device \(device.app) \(device.user)"
            guard let token = device.token else { return [user] }
            return [user, "tandem.token \(device.app) \(device.provider.rawValue) \(token)"]
        }
    }

    private static func put(_ device: Device, by writer: DeviceWriter, perUserMax: Int, _ tx: PostgresTransaction) throws -> Device {
        var device = device
        let old = try Self.device(app: device.app, user: device.user, id: device.id, lock: "FOR UPDATE", tx)
        if let old, old.token == device.token && old.provider == device.provider {
            device.registeredAt = old.registeredAt
            if old.environment == device.environment { device.lastAcceptedAt = old.lastAcceptedAt }
        }
        if let token = device.token {
            if device.lastAcceptedAt == nil {
                // An accepted token stays accepted under another row.
                device.lastAcceptedAt = try tx.query(
                    "SELECT max(accepted_at) AS at FROM tandem.device WHERE app = $1 AND provider = $2 AND token = $3 AND environment = $4",
                    [.text(device.app), .text(device.provider.rawValue), .text(token), .text(device.environment.rawValue)]
                ).first?.intOrNil("at")
            }
            release(token, of: device, by: writer, tx)
        }
        if old == nil, writer == .installation { try makeRoomForWaiting(app: device.app, tx) }
        if old == nil { try makeRoom(for: device, by: writer, perUserMax: perUserMax, tx) }
        try tx.query(
            """
            INSERT INTO tandem.device
              (app, user_id, id, platform, provider, token, form, environment, locale, timezone, app_version, notifications, registered_at,
               refreshed_at, accepted_at, origin)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
            ON CONFLICT (app, user_id, id) DO UPDATE SET
              platform = excluded.platform, provider = excluded.provider, token = excluded.token, form = excluded.form,
              environment = excluded.environment, locale = excluded.locale, timezone = excluded.timezone,
              app_version = excluded.app_version, notifications = excluded.notifications,
              registered_at = excluded.registered_at, refreshed_at = excluded.refreshed_at, accepted_at = excluded.accepted_at
            """,
            [
                .text(device.app), .text(device.user), .text(device.id), .text(device.platform.rawValue), .text(device.provider.rawValue),
                .text(device.token), .text(device.form.rawValue), .text(device.environment.rawValue), .text(device.locale),
                .text(device.timezone), .text(device.appVersion), .bool(device.notifications), .int(device.registeredAt),
                .int(device.refreshedAt), .int(device.lastAcceptedAt), .text(writer.origin),
            ])
        return device
    }

    /// A shared phone would otherwise show one person's notifications to the next.
    private static func release(_ token: String, of device: Device, by writer: DeviceWriter, _ tx: PostgresTransaction) {
        let values: [PostgresValue] = [
            .text(device.app), .text(device.provider.rawValue), .text(token), .text(device.user), .text(device.id),
        ]
        let others = "app = $1 AND provider = $2 AND token = $3 AND NOT (user_id = $4 AND id = $5)"
        switch writer {
        case .backend: tx.queue("UPDATE tandem.device SET token = NULL WHERE \(others) AND origin = 'backend'", values)
        case .participant(let session):
            tx.queue(
                """
                UPDATE tandem.device SET token = NULL WHERE \(others) AND CASE WHEN user_id = $4 THEN origin = 'app'
                  ELSE EXISTS (SELECT FROM tandem.participant p WHERE p.app = $1 AND p.session = $6 AND p.user_id = device.user_id) END
                """, values + [.text(session)])
        case .installation: break
        }
    }

    /// Makes room for one more device of the user. Rows without a token are removed first. A participant never displaces a token that a
    /// gateway accepted. The newest unaccepted one goes, so that a stranger who knows an e-mail cannot push out the first phone.
    private static func makeRoom(for device: Device, by writer: DeviceWriter, perUserMax: Int, _ tx: PostgresTransaction) throws {
        func makeRoom(among prefix: String, max: Int) throws {
            let own = "app = $1 AND user_id = $2 AND starts_with(id, $3)"
            let values: [PostgresValue] = [.text(device.app), .text(device.user), .text(prefix)]
            let count = Int(try tx.query("SELECT count(*) AS count FROM tandem.device WHERE \(own)", values).first?.int("count") ?? 0)
            guard count >= max else { return }
            let choice =
                writer == .backend
                ? "ORDER BY registered_at, id"
                : "AND origin = 'app' AND (token IS NULL OR accepted_at IS NULL) ORDER BY token IS NOT NULL, registered_at DESC, id"
            let removed = try tx.query(
                """
                DELETE FROM tandem.device WHERE app = $1 AND user_id = $2
                  AND id IN (SELECT id FROM tandem.device WHERE \(own) \(choice) LIMIT $4)
                """, values + [.int(count - max + 1)]
            ).written
            if removed <= count - max { throw PeopleStoreError.tooManyDevices }
        }
        if writer != .backend, device.id.hasPrefix(DeviceWriter.unnamedPrefix) {
            try makeRoom(among: DeviceWriter.unnamedPrefix, max: DeviceWriter.unnamedMax)
        }
        try makeRoom(among: "", max: perUserMax)
    }

    /// Bounds the rows waiting for an owner, which anybody may write: the one whose token was reported longest ago is removed.
    private static func makeRoomForWaiting(app: String, _ tx: PostgresTransaction) throws {
        let waiting = "FROM tandem.device WHERE app = $1 AND origin = 'waiting'"
        let count = Int(try tx.query("SELECT count(*) AS count \(waiting)", [.text(app)]).first?.int("count") ?? 0)
        guard count >= DeviceWriter.waitingMax else { return }
        tx.queue(
            "DELETE FROM tandem.device WHERE (app, user_id, id) IN (SELECT app, user_id, id \(waiting) ORDER BY refreshed_at LIMIT $2)",
            [.text(app), .int(count - DeviceWriter.waitingMax + 1)])
    }

    @discardableResult
    private static func delete(app: String, user: String, id: String, _ tx: PostgresTransaction) throws -> Bool {
        try tx.query(
            "DELETE FROM tandem.device WHERE app = $1 AND user_id = $2 AND id = $3", [.text(app), .text(user), .text(id)]
        ).written > 0
    }

    private static func device(
        app: String, user: String, id: String, lock: String = "", _ tx: PostgresTransaction
    ) throws -> Device? {
        try tx.query(
            "SELECT \(columns) FROM tandem.device d WHERE d.app = $1 AND d.user_id = $2 AND d.id = $3 \(lock)",
            [.text(app), .text(user), .text(id)]
        ).first.map(device)
    }

    /// Devices by user, newest registration first.
    static func devices(app: String, users: [String], _ tx: PostgresTransaction) throws -> [String: [Device]] {
        if users.isEmpty { return [:] }
        return try byUser(
            tx.query("SELECT \(columns) FROM tandem.device d WHERE d.app = $1 AND d.user_id = ANY($2)", [.text(app), .texts(users)]))
    }

    /// The statement that reads the devices of a session's participants, for `byUser`.
    static func devices(app: String, session: String) -> PostgresStatement {
        PostgresStatement(
            """
            SELECT \(columns) FROM tandem.participant p JOIN tandem.device d ON d.app = p.app AND d.user_id = p.user_id
            WHERE p.app = $1 AND p.session = $2
            """, [.text(app), .text(session)])
    }

    /// Devices by user, newest registration first. The server would sort all of them, and answer only then.
    static func byUser(_ rows: PostgresRows) throws -> [String: [Device]] {
        var devices = Dictionary(grouping: try rows.map(device), by: \.user)
        for (user, several) in devices where several.count > 1 {
            devices[user] = several.sorted {
                $0.registeredAt == $1.registeredAt ? $0.id.utf8.lexicographicallyPrecedes($1.id.utf8) : $0.registeredAt > $1.registeredAt
            }
        }
        return devices
    }

    private static let columns = """
        d.app, d.user_id, d.id, d.platform, d.provider, d.token, d.form, d.environment, d.locale, d.timezone, d.app_version,
        d.notifications, d.registered_at, d.refreshed_at, d.accepted_at
        """

    private static func device(_ row: PostgresRow) throws -> Device {
        Device(
            app: row.text("app"), user: row.text("user_id"), id: row.text("id"), platform: try row.value("platform", of: "device"),
            provider: try row.value("provider", of: "device"), token: row.textOrNil("token"), form: try row.value("form", of: "device"),
            environment: try row.value("environment", of: "device"), locale: row.textOrNil("locale"), timezone: row.textOrNil("timezone"),
            appVersion: row.textOrNil("app_version"), notifications: row.bool("notifications"), registeredAt: row.int("registered_at"),
            refreshedAt: row.intOrNil("refreshed_at"), lastAcceptedAt: row.intOrNil("accepted_at"))
    }
}
