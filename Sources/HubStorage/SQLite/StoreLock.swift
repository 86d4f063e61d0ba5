import Foundation

/// The lock that gives a store to one process, from before its first read until that process ends, however it ends.
///
/// A system lock on a file next to the database. The file holds the owner's process id for the refused process's error. The file stays
/// after the lock is released: removing it would let two processes each lock a file of the same name.
package final class StoreLock: Sendable {
    /// Path of the lock file.
    package let path: String
    private let descriptor: Int32

    /// Takes the lock, or throws at once. Creates the folder and an empty database file if missing, and changes nothing else.
    /// - Parameter store: the database's path. Every path to the same file leads to the same lock.
    package init(store: String) throws(StorageError) {
        try SQLiteFile.prepare(path: store)
        path = Self.resolved(store) + ".lock"
        descriptor = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, SQLiteFile.filePermissions)
        guard descriptor >= 0 else {
            throw StorageError(
                .notWritable, "the store's lock \(path) cannot be opened for writing (\(Self.reason)); make it and its folder writable")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let error =
                errno == EWOULDBLOCK
                ? StorageError(
                    .inUse,
                    "the store \(store) is in use by \(Self.owner(descriptor)); stop that one, or give this one a store of its own")
                : StorageError(.notWritable, "the store's lock \(path) cannot be taken (\(Self.reason)); use a file system that has locks")
            // `deinit` closes the descriptor; it also runs when an initializer throws after all properties are set.
            throw error
        }
        // The process id for a refused process's error. On a full disk the lock holds without it.
        let text = Array("\(getpid())\n".utf8)
        if ftruncate(descriptor, 0) == 0 { _ = unsafe pwrite(descriptor, text, text.count, 0) }
    }

    deinit {
        guard descriptor >= 0 else { return }
        let code = close(descriptor)
        assert(code == 0 || errno != EBADF, "the lock of \(path) was released already")
    }

    private static var reason: String { unsafe String(cString: strerror(errno)) }

    /// The canonical path, without symbolic links, `.` and `..`.
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
