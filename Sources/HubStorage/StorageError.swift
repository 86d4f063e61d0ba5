/// What failed in a store, as opposed to what it refuses (`DirectoryError`).
///
/// The description names the thing, the place and the remedy. It never contains a stored value: no token, no e-mail, no
/// payload.
package struct StorageError: Error, Equatable, CustomStringConvertible {
    /// The kind of failure: an open set, so that a store can add its own.
    package struct Code: RawRepresentable, Hashable, Sendable {
        package let rawValue: String
        package init(rawValue: String) { self.rawValue = rawValue }

        /// The folder or the file cannot be created, read or written.
        package static let notWritable = Code(rawValue: "not_writable")
        /// The file is something else than an SQLite database, or is damaged.
        package static let notADatabase = Code(rawValue: "not_a_database")
        /// The file is a database, but another program's.
        package static let foreignDatabase = Code(rawValue: "foreign_database")
        /// A newer version of Tandem has changed the tables.
        package static let newerSchema = Code(rawValue: "newer_schema")
        /// Another process holds the database's write lock for longer than the busy time-out.
        package static let locked = Code(rawValue: "locked")
        /// Another process of Tandem has the store (`StoreLock`).
        package static let inUse = Code(rawValue: "in_use")
        /// Writes come faster than they can be made durable: nothing of this call was written, it may be made again.
        package static let queueFull = Code(rawValue: "queue_full")
        /// A stored row does not say what this version can read.
        package static let unreadableRow = Code(rawValue: "unreadable_row")
        /// Anything else that the database reports: nothing of this call was written.
        package static let database = Code(rawValue: "database")
    }

    package let code: Code
    /// A sentence for the operator.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { message }
}
