import GRDB
import HubDelivery

/// Replaces the installation ids of an earlier version by ids derived from them, so that the store holds no secret.
enum SecretInstallations {
    static func hide(in db: Database) throws {
        let joined = try Row.fetchAll(db, sql: "SELECT number, device FROM participant WHERE device IS NOT NULL")
        for row in joined {
            // A shorter id recognises no installation any more.
            try db.execute(
                sql: "UPDATE participant SET device = ? WHERE number = ?",
                arguments: [InstallationID(row["device"])?.handle, row["number"] as Int64])
        }
        let devices = try Row.fetchAll(db, sql: "SELECT rowid, user, id FROM device WHERE origin <> 'backend'")
        for row in devices {
            guard let installation = InstallationID(row["id"]) else { continue }
            let user: String = row["user"]
            try db.execute(
                sql: "UPDATE OR REPLACE device SET user = ?, id = ? WHERE rowid = ?",
                arguments: [user.hasPrefix("client:") ? installation.owner : user, installation.handle, row["rowid"] as Int64])
        }
    }
}
