internal import Foundation
internal import Glibc

/// The machine that made the run.
enum Machine {
    static let cores = max(1, ProcessInfo.processInfo.activeProcessorCount)

    static var settings: [LoadReport.Setting] {
        let model = (Processes.text("/proc/cpuinfo") ?? "").split(separator: "\n").first { $0.hasPrefix("model name") }
        let name = model.flatMap { $0.split(separator: ":").last }.map { $0.trimmingCharacters(in: .whitespaces) }
        let kernel = (Processes.text("/proc/sys/kernel/osrelease") ?? "").trimmingCharacters(in: .whitespacesAndNewlines)
        return [.init("cores", "\(cores)"), .init("processor", name ?? "unknown"), .init("kernel", kernel)]
    }
}
