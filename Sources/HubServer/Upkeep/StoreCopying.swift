internal import HubConfiguration
package import HubStorage

/// `tandem store copy`: two addresses of stores, of which one is SQLite and one PostgreSQL.
package enum StoreCopying {
    /// Copies a store.
    /// - Parameters:
    ///   - source: `sqlite:PATH` or `postgres://…`.
    ///   - target: the other kind.
    ///   - progress: called after each step, on any thread.
    /// - Throws: `usage` for wrong addresses, `badConfiguration` for a store in use or a target with rows, `failed` for all other errors.
    package static func run(
        from source: String, to target: String, progress: @escaping @Sendable (StoreCopy.Progress) -> Void
    ) async throws(ServerError) -> [StoreCopy.Part] {
        let direction: StoreCopy.Direction
        let path: String
        let address: String
        switch (file(source), isPostgres(source), file(target), isPostgres(target)) {
        case (let file?, _, _, true): (direction, path, address) = (.toPostgres, file, target)
        case (_, true, let file?, _): (direction, path, address) = (.toSQLite, file, source)
        default:
            throw ServerError(.usage, "--from and --to: one is sqlite:PATH and the other postgres://HOST/DATABASE, as store: has them")
        }
        do {
            return try await StoreCopy.run(direction, sqlite: path, postgres: address, time: SystemTime(), progress: progress)
        } catch let error as StorageError {
            throw ServerError([.inUse, .notEmpty, .newerSchema].contains(error.code) ? .badConfiguration : .failed, error.message)
        } catch {
            throw ServerError(.failed, "\(error)")
        }
    }

    private static func file(_ address: String) -> String? {
        address.hasPrefix("sqlite:") && address.count > 7 ? String(address.dropFirst(7)) : nil
    }

    private static func isPostgres(_ address: String) -> Bool { address.hasPrefix("postgres://") || address.hasPrefix("postgresql://") }
}
