import GRDB
package import HubDelivery

extension SQLiteStore {
    package func putDevice(_ device: Device) async throws -> Device {
        try await write { db in
            var device = device
            let old = try Self.device(db, app: device.app, user: device.user, id: device.id)
            if let old, old.token == device.token && old.provider == device.provider {
                device.registeredAt = old.registeredAt
                if old.environment == device.environment { device.lastAcceptedAt = old.lastAcceptedAt }
            }
            if let token = device.token {
                // A shared phone would otherwise show one person's notifications to the next.
                try db.cachedStatement(
                    sql: """
                        UPDATE device SET token = NULL
                        WHERE provider = ? AND token = ? AND NOT (app = ? AND user = ? AND id = ?)
                        """
                ).execute(arguments: [device.provider.rawValue, token, device.app, device.user, device.id])
            }
            try db.cachedStatement(
                sql: """
                    INSERT INTO device
                      (app, user, id, platform, provider, token, form, environment, locale, timezone, app_version, notifications, registered_at,
                       refreshed_at, accepted_at)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                    ON CONFLICT (app, user, id) DO UPDATE SET
                      platform = excluded.platform, provider = excluded.provider, token = excluded.token, form = excluded.form,
                      environment = excluded.environment, locale = excluded.locale, timezone = excluded.timezone,
                      app_version = excluded.app_version, notifications = excluded.notifications,
                      registered_at = excluded.registered_at, refreshed_at = excluded.refreshed_at, accepted_at = excluded.accepted_at
                    """
            ).execute(arguments: [
                device.app, device.user, device.id, device.platform.rawValue, device.provider.rawValue, device.token, device.form.rawValue,
                device.environment.rawValue, device.locale, device.timezone, device.appVersion, device.notifications,
                device.registeredAt, device.refreshedAt, device.lastAcceptedAt,
            ])
            return device
        }
    }

    package func device(app: String, user: String, id: String) async throws -> Device? {
        try await read { db in try Self.device(db, app: app, user: user, id: id) }
    }

    /// Newest registration first.
    package func devices(app: String, user: String) async throws -> [Device] {
        try await read { db in
            try Row.fetchAll(
                db.cachedStatement(
                    sql: "SELECT \(Self.deviceColumns) FROM device WHERE app = ? AND user = ? ORDER BY registered_at DESC, id"),
                arguments: [app, user]
            ).map(Self.device(row:))
        }
    }

    package func installation(app: String, id: String) async throws -> Device? {
        try await read { db in
            try Row.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT \(Self.deviceColumns) FROM device
                        WHERE app = ? AND id = ? AND token IS NOT NULL ORDER BY registered_at DESC LIMIT 1
                        """), arguments: [app, id]
            ).map(Self.device(row:))
        }
    }

    package func deleteDevice(app: String, user: String, id: String) async throws -> Bool {
        try await write { db in
            try db.cachedStatement(sql: "DELETE FROM device WHERE app = ? AND user = ? AND id = ?")
                .execute(arguments: [app, user, id])
            return db.changesCount > 0
        }
    }

    package func removeToken(_ token: String, provider: PushProvider, deadSince: Int64?) async throws -> Bool {
        try await write { db in
            // APNs names the moment it found the token dead: a registration after it is a living app's.
            try db.cachedStatement(
                sql: """
                    UPDATE device SET token = NULL
                    WHERE provider = ?1 AND token = ?2 AND (?3 IS NULL OR registered_at < ?3)
                    """
            ).execute(arguments: [provider.rawValue, token, deadSince])
            return db.changesCount > 0
        }
    }

    package func noteAccepted(token: String, provider: PushProvider, environment: APNsEnvironment, at: Int64) async throws {
        try await write { db in
            try db.cachedStatement(sql: "UPDATE device SET environment = ?, accepted_at = ? WHERE provider = ? AND token = ?")
                .execute(arguments: [environment.rawValue, at, provider.rawValue, token])
        }
    }

    private static func device(_ db: Database, app: String, user: String, id: String) throws -> Device? {
        try Row.fetchOne(
            db.cachedStatement(sql: "SELECT \(deviceColumns) FROM device WHERE app = ? AND user = ? AND id = ?"),
            arguments: [app, user, id]
        ).map(device(row:))
    }

    static let deviceColumns = """
        device.app, device.user, device.id, device.platform, device.provider, device.token, device.environment, device.locale,
        device.notifications, device.registered_at, device.form, device.timezone, device.app_version, device.refreshed_at,
        device.accepted_at
        """

    /// - Parameter row: of `deviceColumns`, by position: looking names up takes longer than reading all values.
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
