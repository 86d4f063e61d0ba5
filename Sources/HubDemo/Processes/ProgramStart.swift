package import Glibc

/// Starts programs that run beside the demo. Any thread.
///
/// Foundation's `Process` of Swift 6.3 now and then reads beyond a page as it starts a program (swift-corelibs-foundation, pull
/// request 5472).
package enum ProgramStart {
    /// Whatever the demo does with these signals, a program begins with their defaults.
    private static let defaulted = [SIGTERM, SIGINT, SIGHUP, SIGPIPE]

    /// Starts a program in a process group of its own: Ctrl-C is for the demo, which then ends what it started.
    /// - Parameters:
    ///   - words: the arguments, from the program's own name on.
    ///   - environment: all of it, each as `NAME=value`.
    ///   - input: its standard input; nil: an empty one.
    ///   - output: the file for all that it prints; by default nothing is kept.
    /// - Returns: its process id, which the caller collects; nil: the system refuses.
    package static func start(
        _ path: String, _ words: [String], environment: [String], input: Int32? = nil, output: String = "/dev/null"
    ) -> pid_t? {
        var actions = unsafe posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        unsafe posix_spawn_file_actions_init(&actions)
        unsafe posix_spawnattr_init(&attributes)
        defer {
            unsafe posix_spawn_file_actions_destroy(&actions)
            unsafe posix_spawnattr_destroy(&attributes)
        }
        if let input {
            unsafe posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
        } else {
            unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        }
        unsafe posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        unsafe posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
        var (none, defaults) = (sigset_t(), sigset_t())
        unsafe sigemptyset(&none)
        unsafe sigemptyset(&defaults)
        for signal in defaulted { unsafe sigaddset(&defaults, signal) }
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        unsafe posix_spawnattr_setsigdefault(&attributes, &defaults)
        let flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP
        unsafe posix_spawnattr_setflags(&attributes, Int16(flags))
        var pid: pid_t = 0
        let status = unsafe withCStrings(words) { words in
            unsafe withCStrings(environment) { environment in
                unsafe posix_spawn(&pid, path, &actions, &attributes, words, environment)
            }
        }
        return status == 0 ? pid : nil
    }

    /// Starts this program once more, with other arguments.
    static func startSelf(_ words: [String], environment: [String], input: Int32, output: String = "/dev/null") -> pid_t? {
        start("/proc/self/exe", ["tandem"] + words, environment: environment, input: input, output: output)
    }

    private static func withCStrings<Result>(
        _ texts: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Result
    ) -> Result {
        var copies = unsafe texts.map { unsafe strdup($0) } + [nil]
        defer { for unsafe copy in unsafe copies { unsafe free(copy) } }
        return unsafe copies.withUnsafeMutableBufferPointer { buffer in
            guard let base = buffer.baseAddress else { preconditionFailure("a list that ends with nil is empty") }
            return unsafe body(base)
        }
    }
}
