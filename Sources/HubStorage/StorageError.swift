/// A failure of a store, as opposed to a refusal (`PeopleStoreError`).
///
/// The description names the object, the place and the remedy. It never contains a stored value such as a token, e-mail or payload.
package struct StorageError: Error, Equatable, CustomStringConvertible {
    /// The kind of failure. The set is open, so a store can add its own codes.
    package struct Code: RawRepresentable, Hashable, Sendable {
        /// In snake case, for logs.
        package let rawValue: String
        package init(rawValue: String) { self.rawValue = rawValue }

        /// The folder or the file cannot be created, read or written.
        package static let notWritable = Code(rawValue: "not_writable")
        /// The file is not an SQLite database, or is damaged.
        package static let notADatabase = Code(rawValue: "not_a_database")
        /// The file is a database of another program.
        package static let foreignDatabase = Code(rawValue: "foreign_database")
        /// A newer version of Tandem has changed the tables.
        package static let newerSchema = Code(rawValue: "newer_schema")
        /// Another process has held the database's write lock for longer than the busy time-out.
        package static let locked = Code(rawValue: "locked")
        /// Another Tandem process has locked the store (`StoreLock`).
        package static let inUse = Code(rawValue: "in_use")
        /// The database was made with another number of partitions.
        package static let otherPartitions = Code(rawValue: "other_partitions")
        /// The target of a copy has rows.
        package static let notEmpty = Code(rawValue: "not_empty")
        /// The write queue is full. Nothing of this call was written; the caller may repeat it.
        package static let queueFull = Code(rawValue: "queue_full")
        /// PostgreSQL does not answer, or takes no writes for now. The writes of the call are taken back; the caller may repeat it.
        package static let unavailable = Code(rawValue: "unavailable")
        /// A text holds a character that the store cannot hold.
        package static let badText = Code(rawValue: "bad_text")
        /// A stored row cannot be read by this version.
        package static let unreadableRow = Code(rawValue: "unreadable_row")
        /// Any other database error. Nothing of this call was written.
        package static let database = Code(rawValue: "database")
    }

    /// The kind of failure.
    package let code: Code
    /// A sentence for the operator.
    package let message: String

    /// A failure with a sentence for the operator.
    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { message }
}
