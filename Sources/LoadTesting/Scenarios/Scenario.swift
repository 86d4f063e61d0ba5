/// A way of loading a server, and what it answers.
package protocol Scenario: Sendable {
    /// As on the command line.
    static var name: String { get }
    /// - Returns: the report, and whether everything arrived that had to.
    func run(_ options: RunOptions, target: Target, dialect: any Dialect) throws(LoadError) -> Outcome
}

/// What a run came to.
package struct Outcome: Sendable {
    package var report: LoadReport
    /// Why the run failed, although it went to its end: events were lost, came twice, or out of order; nothing was taken.
    package var failures: [String]

    package init(report: LoadReport, failures: [String]) {
        self.report = report
        self.failures = failures
    }
}
