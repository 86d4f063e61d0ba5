import ArgumentParser
import Foundation
import HubFuzzing

/// `make fuzz`: attacks the parsers with inputs that a seed brings back. Each target runs in a process of its own, so that
/// whatever ends it, the input that did it is kept.
@main
struct TandemFuzz: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tandem-fuzz", abstract: "Attack the parsers with seeded inputs, or check one input again.")

    @Option(help: "Only this target.") var target: String?
    @Option(help: "Inputs over all targets.") var count = 10_000_000
    @Option(help: "Brings the same inputs back; drawn when left out.") var seed: UInt64?
    @Option(help: "Targets that run at the same time.") var jobs = 2
    @Option(help: "Folder for inputs that failed.") var output = ".build/fuzz-failures"
    @Option(help: "Check only this file's bytes.") var replay: String?
    @Option(help: .hidden) var worker: String?
    @Option(help: "Megabytes of memory one target may have.") var memory = 768

    func validate() throws {
        if let target, !FuzzTarget.all.contains(where: { $0.name == target }) {
            throw ValidationError("no target '\(target)': use one of \(FuzzTarget.all.map(\.name).joined(separator: ", "))")
        }
        if replay != nil, target == nil { throw ValidationError("--replay needs --target") }
        if count < 1 || jobs < 1 { throw ValidationError("--count and --jobs must be at least 1") }
    }

    func run() throws {
        if let worker { return try work(record: worker) }
        let seed = seed ?? UInt64.random(in: 1...UInt64.max)
        let wanted = FuzzTarget.all.filter { target == nil || $0.name == target }
        let shares = wanted.reduce(0) { $0 + $1.share }
        let plan = wanted.map { (name: $0.name, count: replay == nil ? max(1, count * $0.share / shares) : 1) }
        print("seed \(seed), \(plan.reduce(0) { $0 + $1.count }) inputs")
        let supervisor = Supervisor(seed: seed, replay: replay, output: output, residentBytesMax: memory << 20)
        guard try supervisor.run(plan, jobs: jobs) else { throw ExitCode.failure }
    }

    /// The process that does it.
    private func work(record path: String) throws {
        guard let target, let record = CaseRecord(path: path), let run = try FuzzRun(target) else { throw ExitCode.failure }
        if let replay {
            let bytes = try Array(Data(contentsOf: URL(fileURLWithPath: replay)))
            if run.check(bytes, record: record) != nil { throw ExitCode.failure }
        } else {
            for kept in SeedFiles.inputs(of: target) where run.check(kept.bytes, record: record) != nil { throw ExitCode.failure }
            if run.run(seed: seed ?? 0, indices: 0..<count, record: record) != nil { throw ExitCode.failure }
        }
        if let sentence = run.target.finish() {
            record.fail(sentence)
            throw ExitCode.failure
        }
    }
}
