/// Reason why the server did not start or had to stop: a message for the operator with the fact, the place and the remedy.
package struct ServerError: Error, CustomStringConvertible {
    /// Exit code of the process.
    package enum ExitCode: Int32, Sendable {
        case failed = 1
        case usage = 64
        case badConfiguration = 78
    }

    /// Exit code of the process.
    package let exitCode: ExitCode
    /// The message.
    package let description: String

    /// An error with its message.
    package init(_ exitCode: ExitCode, _ description: String) {
        self.exitCode = exitCode
        self.description = description
    }
}
