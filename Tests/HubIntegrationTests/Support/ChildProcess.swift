import Foundation
import Glibc
import HubTesting

/// A program of ours or of others that runs beside the tests, with its output in files, where nobody has to read along.
///
/// Whoever starts one ends it with `end()`, whatever happens in between.
final class ChildProcess: Sendable {
    typealias End = SpawnedProgram.End

    let name: String
    private let program: SpawnedProgram
    private let outputFile: URL
    private let errorFile: URL

    /// - Parameters:
    ///   - environment: all of it; nothing of this process's is passed on unasked.
    ///   - folder: where the output goes and the program runs.
    ///   - input: its standard input; nil: empty.
    init(_ executable: URL, _ arguments: [String], environment: [String: String], folder: URL, input: Pipe? = nil) throws {
        name = executable.lastPathComponent
        let files = folder.appendingPathComponent("\(name)-\(UUID().uuidString.prefix(8))")
        outputFile = files.appendingPathExtension("out")
        errorFile = files.appendingPathExtension("err")
        program = try SpawnedProgram(
            executable.path, arguments, environment: environment, folder: folder.path,
            input: input.map { .descriptor($0.fileHandleForReading) } ?? .nothing, output: .descriptor(Self.file(outputFile)),
            errors: .descriptor(Self.file(errorFile)))
    }

    private static func file(_ url: URL) throws -> FileHandle {
        try Data().write(to: url)
        return try FileHandle(forWritingTo: url)
    }

    var pid: Int32 { program.pid }
    var isRunning: Bool { program.isRunning }
    var output: String { Self.text(outputFile) }
    var errors: String { Self.text(errorFile) }
    var errorPath: String { errorFile.path }

    private static func text(_ url: URL) -> String {
        (FileManager.default.contents(atPath: url.path)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    func send(_ signal: Int32) { program.send(signal) }

    func waitForEnd(within limit: Duration = Patience.usual) async throws -> End {
        try await eventually("\(name) to end", within: limit) { !program.isRunning }
        return program.waitForEnd()
    }

    /// Ends it at once if it still runs.
    func end() async {
        send(SIGKILL)
        // Nothing outlives SIGKILL; this only collects it.
        try? await eventually("\(name) to end", within: Patience.usual) { !program.isRunning }
    }
}

/// Limits of waits: far above what an idle machine needs.
enum Patience {
    static let usual = Duration.seconds(120) * SlowBuild.factor
    /// A script of many steps.
    static let script = Duration.seconds(620) * SlowBuild.factor
    /// Packages come over the network.
    static let installation = Duration.seconds(300)
}

struct Timeout: Error, CustomStringConvertible {
    let description: String
}

/// Returns as soon as the condition holds.
func eventually(_ what: String, within limit: Duration = Patience.usual, _ condition: () throws -> Bool) async throws {
    let end = ContinuousClock.now + limit
    while try !condition() {
        if ContinuousClock.now > end { throw Timeout(description: "waited \(limit) for \(what)") }
        try await Task.sleep(for: .milliseconds(10))
    }
}

/// How many tests run their programs at the same time: more would only make each other slow on a small machine.
///
/// All tests ask at the beginning, in any order. Half a second later the longest ones begin: they would go on alone at the end.
actor Slots {
    static let shared = Slots(count: 8)

    private var free: Int
    /// The longest first.
    private var waiting: [(seconds: Int, slot: CheckedContinuation<Void, Never>)] = []
    private var isOpen = false

    init(count: Int) {
        free = count
    }

    func take(seconds: Int) async {
        if !isOpen, waiting.isEmpty {
            Task {
                try? await Task.sleep(for: .milliseconds(500))
                isOpen = true
                give()
            }
        }
        await withCheckedContinuation { slot in
            waiting.insert((seconds, slot), at: waiting.firstIndex { $0.seconds < seconds } ?? waiting.count)
            give()
        }
    }

    func giveBack() {
        free += 1
        give()
    }

    private func give() {
        while isOpen, free > 0, !waiting.isEmpty {
            free -= 1
            waiting.removeFirst().slot.resume()
        }
    }
}
