/// Turns counts of failures into figures and sentences.
enum Verdict {
    /// Close codes for slow consumers, whose missing events are not the server's fault.
    private static let slowConsumerCodes: Set<Int> = [4100, 1013, 1008]

    /// Judges completeness and order of numbered events.
    static func judge(
        _ report: inout LoadReport, kinds: [KindCounts], numbered: [Int], missing: UInt64, links: WorkerCounts
    ) -> [String] {
        var all = KindCounts()
        for kind in numbered { all.add(kinds[kind]) }
        let lost = all.lost + missing
        report.figures.append(.init("events lost", Double(lost)))
        report.figures.append(.init("events twice", Double(all.duplicated)))
        report.figures.append(.init("events out of order", Double(all.late)))
        let closed = links.closedByServer.values.reduce(0, +)
        report.figures.append(.init("connections closed by the server", Double(closed)))
        let wereSlow = links.closedByServer.filter { slowConsumerCodes.contains($0.key) }.values.reduce(0, +)
        var failures: [String] = []
        if closed > 0 {
            let codes = links.closedByServer.sorted { $0.key < $1.key }.map {
                "\($0.value) with \($0.key == 0 ? "no close frame" : "\($0.key)")"
            }
            report.warnings.append("The server closed \(closed) connections: \(codes.joined(separator: ", ")).")
        }
        if lost > 0 {
            if wereSlow > 0 {
                report.warnings.append(
                    "\(lost) events did not arrive; the server closed \(wereSlow) connections as too slow, which may explain it.")
            } else {
                failures.append("\(lost) EVENTS WERE LOST.")
            }
        }
        if closed > wereSlow { failures.append("The server closed \(closed - wereSlow) connections that were not too slow.") }
        if all.duplicated > 0 { failures.append("\(all.duplicated) events arrived twice.") }
        if all.late > 0 { failures.append("\(all.late) events arrived out of their publisher's order.") }
        if all.foreign > 0 { failures.append("\(all.foreign) events are of nobody's sequence: does another run use the same channel?") }
        return failures
    }

    /// Judges the results of the publishes.
    static func judge(_ report: inout LoadReport, publishes: PublishCounts, seconds: Double) -> [String] {
        report.figures.append(.init("publishes", Double(publishes.taken)))
        report.figures.append(.init("publish errors", Double(publishes.failed)))
        var failures: [String] = []
        for (status, count) in publishes.refused.sorted(by: { $0.key < $1.key }) {
            report.warnings.append("\(count) publishes were answered with status \(status).")
        }
        if publishes.unanswered > 0 { report.warnings.append("\(publishes.unanswered) publishes got no answer.") }
        if publishes.unsent > 1 {
            report.warnings.append(
                "\(publishes.unsent) publishes were due and could not be sent in time: the server (or the number of --publishers) does not keep up with the rate."
            )
        }
        if publishes.abandoned > 0 {
            failures.append(
                "\(publishes.abandoned) connections that publish failed \(Publisher.failuresMax) times in a row and were given up.")
        }
        if publishes.sent > 0, publishes.taken == 0 { failures.append("No publish was taken.") }
        return failures
    }
}
