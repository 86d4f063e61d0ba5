import Foundation
import HubFuzzing
import HubTesting

/// Runs targets in child processes, watches their progress and memory, and keeps what failed.
struct Supervisor {
    let seed: UInt64
    let replay: String?
    let output: String
    let residentBytesMax: Int

    /// An input that takes longer is a hang. Far more than the slowest takes under a sanitizer on a loaded machine.
    static let hangSeconds = 60.0

    private struct Child {
        let name: String
        let count: Int
        let program: SpawnedProgram
        let record: CaseRecord
        let path: String
        let started = Date()
        var checked = 0
        var lastProgress = Date()
        var residentBytesPeak = 0
        /// Half-way, for growth.
        var residentBytesHalf = 0
        var killedFor: String?
    }

    /// Runs every target of the plan, at most `jobs` at a time; false when one failed.
    func run(_ plan: [(name: String, count: Int)], jobs: Int) throws -> Bool {
        var waiting = plan[...]
        var children: [Child] = []
        var isGood = true
        while !waiting.isEmpty || !children.isEmpty {
            while children.count < jobs, let next = waiting.popFirst() { children.append(try start(next.name, count: next.count)) }
            Thread.sleep(forTimeInterval: 0.05)
            for index in children.indices { watch(&children[index]) }
            for child in children where !child.program.isRunning { isGood = try report(child) && isGood }
            children.removeAll { !$0.program.isRunning }
        }
        return isGood
    }

    private func start(_ name: String, count: Int) throws -> Child {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("tandem-fuzz-\(UUID().uuidString)").path
        guard let record = CaseRecord(path: path) else { throw CocoaError(.fileWriteUnknown) }
        var arguments = ["--worker", path, "--target", name, "--seed", String(seed), "--count", String(count)]
        if let replay { arguments += ["--replay", replay] }
        var environment = ProcessInfo.processInfo.environment
        // Dictionaries keep their order from run to run, and with it what an engine does with a program.
        environment["SWIFT_DETERMINISTIC_HASHING"] = "1"
        let executable = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path
        let program = try SpawnedProgram(executable, arguments, environment: environment)
        return Child(name: name, count: count, program: program, record: record, path: path)
    }

    private func watch(_ child: inout Child) {
        let checked = child.record.checked
        if checked != child.checked {
            child.checked = checked
            child.lastProgress = Date()
        }
        let resident = Self.residentBytes(child.program.pid)
        child.residentBytesPeak = max(child.residentBytesPeak, resident)
        if checked * 2 < child.count { child.residentBytesHalf = resident }
        guard child.killedFor == nil else { return }
        if resident > residentBytesMax { child.killedFor = "uses \(resident >> 20) MB of memory, more than \(residentBytesMax >> 20)" }
        if Date().timeIntervalSince(child.lastProgress) > Self.hangSeconds {
            child.killedFor = "hangs: no progress for \(Int(Self.hangSeconds)) s"
        }
        if child.killedFor != nil { child.program.send(SIGKILL) }
    }

    private static func residentBytes(_ pid: Int32) -> Int {
        guard let text = FileManager.default.contents(atPath: "/proc/\(pid)/statm") else { return 0 }
        let pages = String(decoding: text, as: UTF8.self).split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * sysconf(Int32(_SC_PAGESIZE))
    }

    /// One line for a target that is through; for one that failed also the sentence, the file and how to try it again.
    private func report(_ child: Child) throws -> Bool {
        defer { unlink(child.path) }
        let seconds = Date().timeIntervalSince(child.started)
        let figures = String(
            format: "%9d inputs %7.1f s %8.0f/s  slowest %.1f ms  memory %d MB at half, %d MB at most", child.record.checked, seconds,
            Double(child.record.checked) / max(seconds, 0.001), Double(child.record.slowestMicroseconds) / 1000,
            child.residentBytesHalf >> 20,
            child.residentBytesPeak >> 20)
        print(child.name.padding(toLength: 15, withPad: " ", startingAt: 0) + figures)
        let end = child.program.waitForEnd()
        if end == .init(code: 0, wasSignalled: false), child.killedFor == nil { return true }
        let how = end.wasSignalled ? "signal" : "exit code"
        let sentence =
            child.killedFor
            ?? (child.record.sentence.isEmpty ? "ended with \(how) \(end.code)" : child.record.sentence)
        try FileManager.default.createDirectory(atPath: output, withIntermediateDirectories: true)
        let file = URL(fileURLWithPath: output).appendingPathComponent("\(child.name)-\(seed)-\(child.record.checked)").path
        try Data(child.record.input).write(to: URL(fileURLWithPath: file))
        let executable = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path
        print("FAILED \(child.name): \(sentence)\n  again: \(executable) --target \(child.name) --replay \(file)")
        return false
    }
}
