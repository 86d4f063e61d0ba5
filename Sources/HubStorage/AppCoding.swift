import HubCore
import HubDelivery
import HubJSON

/// Text forms of an app's keys and settings, alike in every store.
enum AppCoding {
    static func text(of keys: [AppRecord.Key]) -> String {
        let entries = keys.map { key -> JSONValue in
            ["key": .string(key.key), "secret": .string(key.secret), "expires_at": key.expiresAt.map { .int($0) } ?? .null]
        }
        return JSONValue.array(entries).text
    }

    /// - Throws: `unreadableRow` for a text that this version did not write.
    static func app(
        id: String, keys: String, settings: String, revision: Int64, createdAt: Int64, removedAt: Int64?
    ) throws(StorageError) -> AppRecord {
        guard let list = (try? JSONValue(parsing: keys))?.arrayValue, let object = (try? JSONValue(parsing: settings))?.objectValue else {
            throw StorageError(.unreadableRow, "the app \(id) has unreadable keys or settings; remove it and add another")
        }
        let pairs = list.compactMap { entry -> AppRecord.Key? in
            guard let key = entry["key"]?.stringValue, let secret = entry["secret"]?.stringValue else { return nil }
            return AppRecord.Key(key: key, secret: secret, expiresAt: entry["expires_at"]?.intValue)
        }
        var app = AppRecord(id: id, keys: pairs, settings: object, createdAt: createdAt)
        app.revision = revision
        app.removedAt = removedAt
        return app
    }

    /// Deletes what belongs to an app.
    /// - Parameter delete: deletes the app's rows of a table, and returns their number.
    static func remains(_ delete: (_ table: String) throws -> Int) rethrows -> AppRemains {
        var remains = AppRemains()
        // Participants refer to sessions.
        remains.participants = try delete("participant")
        remains.sessions = try delete("session")
        remains.devices = try delete("device")
        remains.scheduled = try delete("scheduled")
        _ = try delete("sent_once")
        return remains
    }
}
