/// Why the server did not start or had to stop: a message for the operator that says what, where and what to do.
package struct ServerError: Error, CustomStringConvertible {
    /// What the process ends with.
    package enum ExitCode: Int32, Sendable {
        case failed = 1
        case usage = 64
        case badConfiguration = 78
    }

    package let exitCode: ExitCode
    package let description: String

    package init(_ exitCode: ExitCode, _ description: String) {
        self.exitCode = exitCode
        self.description = description
    }
}
