extension PostgresStore {
    /// `AttendanceMarkStore.markAttendance`: overwrites one row.
    package func markAttendance(at time: Int64) async throws {
        try await write { tx in
            tx.queue(
                "INSERT INTO tandem.attendance_mark (id, at) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET at = excluded.at", [.int(time)])
        }
    }

    /// `AttendanceMarkStore.lastAttendance`: reads one row.
    package func lastAttendance() async throws -> Int64? {
        try await read { tx in try tx.query("SELECT at FROM tandem.attendance_mark WHERE id = 1").first?.int("at") }
    }

    /// Latest time stored anywhere, in milliseconds since 1970 by the clock of that moment; nil if nothing is stored.
    ///
    /// Events without recipients and answers have no index by time: of them the beginning of their day counts.
    package func newestTime() async throws -> Int64? {
        try await read { tx in
            try tx.query(
                """
                SELECT greatest(
                  (SELECT at FROM tandem.attendance_mark WHERE id = 1),
                  (SELECT committed_at FROM tandem.fanout ORDER BY number DESC LIMIT 1),
                  (SELECT max(refreshed_at) FROM tandem.device),
                  (SELECT max(day)::bigint * 86400000 FROM tandem.day)) AS at
                """
            ).first?.intOrNil("at")
        }
    }
}
