internal import Foundation
internal import Glibc

/// Reads Linux's figures of processes and of the machine under /proc.
enum Processes {
    /// The file's text; nil if it cannot be read, for example after the process ended.
    static func text(_ path: String) -> String? {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let count = unsafe read(descriptor, &part, part.count)
            guard count > 0 else { break }
            bytes.append(contentsOf: part[..<count])
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The fields of `/proc/PID/stat` after the command's name: state, parent, ...
    private static func fields(_ pid: Int) -> [Substring]? {
        guard let text = text("/proc/\(pid)/stat"), let end = text.lastIndex(of: ")") else { return nil }
        return text[text.index(after: end)...].split(separator: " ")
    }

    /// User and system time of all threads, seconds.
    static func cpu(_ pid: Int) -> Double? {
        guard let fields = fields(pid), fields.count > 13, let user = Double(fields[11]), let system = Double(fields[12]) else {
            return nil
        }
        return (user + system) / ticksPerSecond
    }

    private static let ticksPerSecond = Double(sysconf(Int32(_SC_CLK_TCK)))

    static func residentBytes(_ pid: Int) -> Double? {
        guard let line = text("/proc/\(pid)/status")?.split(separator: "\n").first(where: { $0.hasPrefix("VmRSS:") }),
            let kilobytes = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap({ Double($0) })
        else { return nil }
        return kilobytes * 1024
    }

    static func descriptors(_ pid: Int) -> Int? { (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd"))?.count }

    /// The process and all its descendants.
    static func family(of root: Int) -> [Int] {
        let all = ((try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []).compactMap { Int($0) }
        var children: [Int: [Int]] = [:]
        for pid in all {
            if let fields = fields(pid), fields.count > 1, let parent = Int(fields[1]) { children[parent, default: []].append(pid) }
        }
        var family = [root]
        var index = 0
        while index < family.count {
            family += children[family[index]] ?? []
            index += 1
        }
        return family
    }

    /// The machine's time use since boot, in seconds of one core.
    struct MachineTime: Sendable {
        var busy = 0.0
        var idle = 0.0
        /// Time in which the hypervisor ran another virtual machine instead of this one.
        var stolen = 0.0

        static func - (later: MachineTime, earlier: MachineTime) -> MachineTime {
            MachineTime(busy: later.busy - earlier.busy, idle: later.idle - earlier.idle, stolen: later.stolen - earlier.stolen)
        }
    }

    static var machine: MachineTime {
        let values = (text("/proc/stat") ?? "").prefix { $0 != "\n" }.split(separator: " ").dropFirst().compactMap { Double($0) }
        guard values.count >= 8 else { return MachineTime() }
        return MachineTime(
            busy: (values[0] + values[1] + values[2] + values[5] + values[6]) / ticksPerSecond,
            idle: (values[3] + values[4]) / ticksPerSecond, stolen: values[7] / ticksPerSecond)
    }
}

/// Resource use of the server's processes, as seen from outside.
struct ServerUse: Sendable, Equatable {
    /// Seconds, over all threads of the present processes.
    var cpu = 0.0
    var residentBytes = 0.0
    var descriptors = 0

    /// The use of these processes and their descendants; nil: none are given.
    /// - Throws: if there is no such process.
    static func read(_ pids: [Int]) throws(LoadError) -> ServerUse? {
        guard !pids.isEmpty else { return nil }
        for pid in pids where Processes.cpu(pid) == nil { throw LoadError("--server-pid \(pid): there is no such process (any more)") }
        var use = ServerUse()
        for member in Set(pids.flatMap(Processes.family)) {
            use.cpu += Processes.cpu(member) ?? 0
            use.residentBytes += Processes.residentBytes(member) ?? 0
            use.descriptors += Processes.descriptors(member) ?? 0
        }
        return use
    }
}
