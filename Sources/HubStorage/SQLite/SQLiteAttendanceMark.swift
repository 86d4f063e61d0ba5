import GRDB

extension SQLiteStore {
    package func markAttendance(at time: Int64) async throws {
        try await write { db in
            try db.cachedStatement(sql: "INSERT INTO attendance_mark (id, at) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET at = excluded.at")
                .execute(arguments: [time])
        }
    }

    package func lastAttendance() async throws -> Int64? {
        try await read { db in try Int64.fetchOne(db, sql: "SELECT at FROM attendance_mark WHERE id = 1") }
    }
}
