import Foundation

/// Whose store it is: one process's at a time, from before anything in it is looked at until that process ends, however it ends.
///
/// A lock of the system's on a file beside the database, which holds the owner's process id for whoever is refused. The file stays
/// when the lock is given up: removing it would let two processes each lock a file of their own under one name.
package final class StoreLock: Sendable {
    /// Where the lock is.
    package let path: String
    private let descriptor: Int32

    /// Takes the lock, or refuses at once. Makes the folder and an empty database file where they are missing, and touches nothing else.
    /// - Parameter store: the database's path; every path to the same file comes to the same lock.
    package init(store: String) throws(StorageError) {
        try SQLiteFile.prepare(path: store)
        path = Self.resolved(store) + ".lock"
        descriptor = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, SQLiteFile.filePermissions)
        guard descriptor >= 0 else {
            throw StorageError(.notWritable, "the store's lock \(path) cannot be opened for writing (\(Self.reason)); make it and its folder writable")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let error = errno == EWOULDBLOCK
                ? StorageError(
                    .inUse,
                    "the store \(store) is in use by \(Self.owner(descriptor)); stop that one, or give this one a store of its own")
                : StorageError(.notWritable, "the store's lock \(path) cannot be taken (\(Self.reason)); use a file system that has locks")
            // `deinit` closes the descriptor: it runs for an initializer that throws with everything in its place, too.
            throw error
        }
        // Words for whoever is refused. The lock holds without them, on a full disk, too.
        let text = Array("\(getpid())\n".utf8)
        if ftruncate(descriptor, 0) == 0 { _ = unsafe pwrite(descriptor, text, text.count, 0) }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    private static var reason: String { unsafe String(cString: strerror(errno)) }

    /// The one name behind symbolic links, `.` and `..`.
    private static func resolved(_ path: String) -> String {
        guard let name = unsafe realpath(path, nil) else { return path }
        defer { unsafe free(name) }
        return unsafe String(cString: name)
    }

    private static func owner(_ descriptor: Int32) -> String {
        let text = unsafe [UInt8](unsafeUninitializedCapacity: 20) { buffer, count in
            count = unsafe max(0, pread(descriptor, buffer.baseAddress, buffer.count, 0))
        }
        guard let pid = Int32(String(decoding: text.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)) else { return "another process" }
        return "another process, pid \(pid)"
    }
}
