internal import Glibc

/// The system's numbers about this process, under the names that all Prometheus clients use.
struct ProcessFacts: Sendable, Equatable {
    /// Seconds of processor time of all threads.
    var cpuSeconds = 0.0
    var residentBytes = 0
    var virtualBytes = 0
    var openDescriptors = 0
    var descriptorsMax = 0
    /// Seconds since 1970.
    var startSeconds = 0.0
    var threads = 0

    /// Reads `/proc` in some microseconds; on kernels before 6.2 in O(n) of the descriptors.
    static func now() -> ProcessFacts {
        var facts = ProcessFacts()
        let ticks = Double(max(1, sysconf(Int32(_SC_CLK_TCK))))
        // The second field is the program's name in parentheses, which may contain parentheses itself.
        let fields = (text(of: "/proc/self/stat")?.split(separator: ")").last ?? "").split(separator: " ")
        func field(_ number: Int) -> Double { fields.indices.contains(number - 3) ? Double(fields[number - 3]) ?? 0 : 0 }
        facts.cpuSeconds = (field(14) + field(15)) / ticks
        facts.threads = Int(field(20))
        facts.startSeconds = bootSeconds + field(22) / ticks
        facts.virtualBytes = Int(field(23))
        facts.residentBytes = Int(field(24)) * max(0, sysconf(Int32(_SC_PAGESIZE)))
        facts.openDescriptors = descriptorCount()
        var limit = rlimit()
        if unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
            facts.descriptorsMax = Int(clamping: limit.rlim_cur)
        }
        return facts
    }

    /// Time at which the machine started, in seconds since 1970.
    private static let bootSeconds: Double = {
        let line = text(of: "/proc/stat")?.split(separator: "\n").first { $0.hasPrefix("btime ") }
        return line.flatMap { Double($0.dropFirst("btime ".count)) } ?? 0
    }()

    private static func descriptorCount() -> Int {
        var found = stat()
        // Since Linux 6.2 the folder's size is the number of its entries.
        if unsafe stat("/proc/self/fd", &found) == 0, found.st_size > 0 { return Int(found.st_size) }
        guard let folder = unsafe opendir("/proc/self/fd") else { return 0 }
        defer { unsafe closedir(folder) }
        var count = 0
        while let entry = unsafe readdir(folder) { if unsafe entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) { count += 1 } }
        // The descriptor that reads the folder is not counted.
        return count - 1
    }

    private static func text(of path: String) -> String? {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 64 * 1024)
        let count = unsafe read(descriptor, &bytes, bytes.count)
        return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}

extension MetricsText {
    mutating func process(_ facts: ProcessFacts) {
        counter("process_cpu_seconds_total", "Processor time used, in seconds.", [Sample(facts.cpuSeconds)])
        gauge("process_resident_memory_bytes", "Memory in use.", facts.residentBytes)
        gauge("process_virtual_memory_bytes", "Memory reserved.", facts.virtualBytes)
        gauge("process_open_fds", "File descriptors in use.", facts.openDescriptors)
        gauge("process_max_fds", "File descriptors that the process may have.", facts.descriptorsMax)
        gauge("process_threads", "Threads.", facts.threads)
        gauge("process_start_time_seconds", "When the process began, in seconds since 1970.", [Sample(facts.startSeconds)])
        gauge(
            "tandem_build_info", "1; what is running.",
            [Sample(1, [("version", BuildInfo.version), ("configuration", BuildInfo.configuration)])])
    }
}

/// Version and build of the program.
package enum BuildInfo {
    /// Version of the release.
    package static let version = "0.1.0"
    #if DEBUG
    /// Build configuration.
    package static let configuration = "debug"
    #else
    /// Build configuration.
    package static let configuration = "release"
    #endif
}
