/// A way of loading a server, with a report.
package protocol Scenario: Sendable {
    /// Name on the command line.
    static var name: String { get }
    /// - Returns: the report, and the failures if something did not arrive.
    func run(_ options: RunOptions, targets: Targets, dialect: any Dialect) throws(LoadError) -> Outcome
}

/// The result of a run.
package struct Outcome: Sendable {
    package var report: LoadReport
    /// Why a completed run failed: events were lost, duplicated or reordered, or nothing was accepted.
    package var failures: [String]

    package init(report: LoadReport, failures: [String]) {
        self.report = report
        self.failures = failures
    }
}
