import GRDB

extension SQLiteStore {
    /// `AttendanceMarkStore.markAttendance`: overwrites one row.
    package func markAttendance(at time: Int64) async throws {
        try await write { db in
            try db.cachedStatement(
                sql: "INSERT INTO attendance_mark (id, at) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET at = excluded.at"
            )
            .execute(arguments: [time])
        }
    }

    /// Latest time stored anywhere, in milliseconds since 1970 by the clock of that moment; nil if nothing is stored.
    package func newestTime() async throws -> Int64? {
        try await read { db in
            // Each column is indexed or belongs to a table of one row.
            let columns = [("attendance_mark", "at"), ("event", "committed_at"), ("answer", "answered_at"), ("device", "refreshed_at")]
            return try columns.compactMap { table, column in try Int64.fetchOne(db, sql: "SELECT MAX(\(column)) FROM \(table)") }.max()
        }
    }

    /// `AttendanceMarkStore.lastAttendance`: reads one row.
    package func lastAttendance() async throws -> Int64? {
        try await read { db in try Int64.fetchOne(db, sql: "SELECT at FROM attendance_mark WHERE id = 1") }
    }
}
