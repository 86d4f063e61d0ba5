internal import CFacts
internal import Glibc
package import HubConfiguration

/// The machine as a hub would find it: limits, memory, disk and clock.
package struct MachineFacts: Sendable, Equatable {
    /// File descriptors that a process may have.
    package var descriptorsMax = 0
    /// Connections that the kernel keeps until they are accepted (`net.core.somaxconn`).
    package var backlogMax = 0
    /// Bytes that programs can still take.
    package var memoryBytes = 0
    /// Free bytes on the store's disk; nil for PostgreSQL, and if nothing can be learnt.
    package var diskBytes: Int?
    /// Whether this account may write into the store's folder; true for PostgreSQL.
    package var canWriteStore = true
    /// The store's folder, or the nearest one above that exists, because the hub makes its folder; nil for PostgreSQL.
    package var storeFolder: String?
    /// Whether a time service keeps the clock.
    package var isClockKept = true

    /// Reads the facts for a configuration, in some microseconds.
    package static func now(for configuration: Configuration) -> MachineFacts {
        var facts = MachineFacts()
        var limit = rlimit()
        if unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
            facts.descriptorsMax = Int(clamping: limit.rlim_max)
        }
        facts.backlogMax = number(in: text(of: "/proc/sys/net/core/somaxconn"), after: "") ?? 0
        facts.memoryBytes = (number(in: text(of: "/proc/meminfo"), after: "MemAvailable:") ?? 0) * 1024
        facts.isClockKept = tandem_clock_is_kept()
        if case .sqlite(let path) = configuration.store.value {
            let folder = existing(parent(of: path))
            facts.storeFolder = folder
            facts.canWriteStore = unsafe access(folder, W_OK | X_OK) == 0
            var disk = statvfs()
            if unsafe statvfs(folder, &disk) == 0 { facts.diskBytes = Int(disk.f_bavail) * Int(disk.f_frsize) }
        }
        return facts
    }

    private static func existing(_ folder: String) -> String {
        var status = stat()
        if folder == "/" || folder == "." { return folder }
        return unsafe stat(folder, &status) == 0 ? folder : existing(parent(of: folder))
    }

    private static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// The number behind a word, in a text of the kernel's.
    static func number(in text: String, after word: String) -> Int? {
        text.split(separator: "\n").first { $0.hasPrefix(word) }.flatMap { line in
            line.dropFirst(word.count).split(separator: " ").first.flatMap { Int($0) }
        }
    }

    private static func text(of path: String) -> String {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 16 * 1024)
        let count = unsafe read(descriptor, &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }
}
