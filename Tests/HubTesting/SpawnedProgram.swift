import Foundation
import Glibc
import HubCore

/// A program that runs beside the tests. Any thread.
///
/// Foundation's `Process` of Swift 6.3 now and then reads beyond a page as it starts a program. The test run ends with signal 11 then
/// (swift-corelibs-foundation, pull request 5472).
package final class SpawnedProgram: Sendable {
    /// How a program ended.
    package struct End: Equatable, Sendable {
        /// The exit code, or the signal's number when `wasSignalled`.
        package var code: Int32
        package var wasSignalled: Bool

        package init(code: Int32, wasSignalled: Bool) { (self.code, self.wasSignalled) = (code, wasSignalled) }
    }

    /// One of the program's three standard streams.
    package enum Stream {
        case nothing
        case inherited
        case descriptor(FileHandle)
    }

    private struct NotStarted: Error, CustomStringConvertible {
        let description: String
    }

    package let pid: pid_t
    private let ended = Guarded<End?>(nil)

    /// - Parameters:
    ///   - path: of the executable; a name without a slash is looked up in PATH.
    ///   - environment: all of it; nil: this process's.
    ///   - folder: where it runs; nil: here.
    package init(
        _ path: String, _ arguments: [String], environment: [String: String]? = nil, folder: String? = nil, input: Stream = .nothing,
        output: Stream = .inherited, errors: Stream = .inherited
    ) throws {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (number, stream) in [input, output, errors].enumerated() {
            switch stream {
            case .nothing: posix_spawn_file_actions_addopen(&actions, Int32(number), "/dev/null", O_RDWR, 0)
            case .inherited: break
            case .descriptor(let handle): posix_spawn_file_actions_adddup2(&actions, handle.fileDescriptor, Int32(number))
            }
        }
        // A program that held another test's socket would keep it open.
        Self.closeFrom(&actions, 3)
        if let folder { Self.changeFolder(&actions, folder) }
        // The threads of tests block signals, and some ignore SIGPIPE.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var (none, all) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        let words = ([path] + arguments).map { strdup($0) }
        let settings = (environment ?? ProcessInfo.processInfo.environment).map { strdup("\($0)=\($1)") }
        defer { for text in words + settings { free(text) } }
        var pid: pid_t = 0
        let error = posix_spawnp(&pid, path, &actions, &attributes, words + [nil], settings + [nil])
        guard error == 0 else { throw NotStarted(description: "\(path) does not start: \(String(cString: strerror(error)))") }
        self.pid = pid
        // The testing library waits for any child, and its thread spins while an ended one is not collected.
        Thread.detachNewThread { [pid, ended] in Self.collect(pid, ended) }
    }

    private static func collect(_ pid: pid_t, _ ended: Guarded<End?>) {
        var facts = siginfo_t()
        // The number stays the program's until the lock is held.
        while waitid(P_PID, id_t(pid), &facts, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        ended.withLock { end in
            var status: Int32 = 0
            while waitpid(pid, &status, 0) != pid, errno == EINTR {}
            let signal = status & 0x7F
            end = End(code: signal == 0 ? status >> 8 & 0xFF : signal, wasSignalled: signal != 0)
        }
    }

    private typealias Actions = UnsafeMutablePointer<posix_spawn_file_actions_t>
    // glibc has both, and hides them from Swift.
    private static let closeFrom = unsafeBitCast(
        dlsym(nil, "posix_spawn_file_actions_addclosefrom_np"), to: (@convention(c) (Actions, Int32) -> Void).self)
    private static let changeFolder = unsafeBitCast(
        dlsym(nil, "posix_spawn_file_actions_addchdir_np"), to: (@convention(c) (Actions, UnsafePointer<CChar>) -> Void).self)

    /// Runs a program to its end.
    /// - Returns: what it printed on both streams, and its exit code.
    package static func output(of path: String, _ arguments: [String]) throws -> (text: String, code: Int32) {
        let pipe = Pipe()
        let program = try SpawnedProgram(
            path, arguments, output: .descriptor(pipe.fileHandleForWriting), errors: .descriptor(pipe.fileHandleForWriting))
        try pipe.fileHandleForWriting.close()
        let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        return (text, program.waitForEnd().code)
    }

    /// How it ended; nil: it runs.
    package var end: End? { ended.withLock { $0 } }

    package var isRunning: Bool { end == nil }

    package func send(_ signal: Int32) {
        // Its number is not another's before it was collected.
        ended.withLock { if $0 == nil { kill(pid, signal) } }
    }

    /// Blocks the thread until it has ended.
    @discardableResult
    package func waitForEnd() -> End {
        while true {
            if let end { return end }
            usleep(5_000)
        }
    }
}
