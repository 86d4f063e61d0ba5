import DeliverySimulation
import Foundation

// Usage: tandem-simulate [--seed N] [--pairs N] [--nodes N] [--faults MILLISECONDS] [--part PART] [--break RULE]
var values: [String: String] = [:]
var arguments = Array(CommandLine.arguments.dropFirst())
while arguments.count >= 2, ["--seed", "--pairs", "--nodes", "--faults", "--part", "--break"].contains(arguments[0]) {
    values[arguments[0]] = arguments[1]
    arguments.removeFirst(2)
}
let seed = values["--seed"].map { UInt64($0) } ?? UInt64.random(in: 0...UInt64.max)
let pairs = values["--pairs"].map { Int($0) } ?? 1_000_000
let nodes = values["--nodes"].map { Int($0) } ?? 1
let faults = values["--faults"].map { Int64($0) } ?? NodeSettings(seed: 0, pairs: 0).faultInterval
let rule = values["--break"]
// A rule concerns one part.
let part = values["--part"] ?? rule.map { MemberRule(rawValue: $0) == nil ? "delivery" : "members" }
let isKnownRule =
    rule.map {
        nodes == 1 ? BrokenRule(rawValue: $0) != nil : NodeRule(rawValue: $0) != nil || MemberRule(rawValue: $0) != nil
    } ?? true
guard arguments.isEmpty, let seed, let pairs, let nodes, (1...5).contains(nodes), let faults, faults >= 0, isKnownRule,
    part.map({ ["delivery", "members"].contains($0) }) ?? true
else {
    let rules = (nodes == 1 ? BrokenRule.allCases.map(\.rawValue) : NodeRule.allCases.map(\.rawValue) + MemberRule.allCases.map(\.rawValue))
        .joined(separator: ", ")
    FileHandle.standardError.write(
        Data(
            """
            usage: tandem-simulate [--seed N] [--pairs N] [--nodes N] [--faults MILLISECONDS] [--part PART] [--break RULE]
            --nodes takes 1 to 5; several nodes have one stream, leases, faults of nodes and engines, and the policy notify alone
            --part is delivery or members, of several nodes; both by default
            --faults is the time between two faults of several nodes, on average; 0: none
            rules: \(rules)

            """.utf8))
    exit(64)
}
print("seed \(seed), \(pairs) pairs\(nodes == 1 ? "" : ", \(nodes) nodes")\(rule.map { ", broken: \($0)" } ?? "")")
let began = ContinuousClock.now
var reports: [SimulationReport] = []
if nodes == 1 {
    var settings = SimulationSettings(seed: seed, pairs: pairs)
    settings.broken = rule.flatMap(BrokenRule.init(rawValue:))
    reports = [Simulation(settings).run()]
} else {
    if part != "members" {
        var settings = NodeSettings(seed: seed, pairs: pairs)
        settings.nodes = nodes
        settings.faultInterval = faults
        settings.broken = rule.flatMap(NodeRule.init(rawValue:))
        reports.append(NodeSimulation(settings).run())
    }
    if part != "delivery" {
        var settings = MemberSettings(seed: seed, departures: pairs / 10)
        settings.nodes = nodes
        settings.faultInterval = faults * 2
        settings.broken = rule.flatMap(MemberRule.init(rawValue:))
        reports.append(MemberSimulation(settings).run())
    }
}
let seconds = (ContinuousClock.now - began) / .seconds(1)
for report in reports { print(report.description) }
print("run time        \(String(format: "%.1f", seconds)) s")
print("again with      make simulate SEED=\(seed) PAIRS=\(pairs)\(nodes == 1 ? "" : " NODES=\(nodes) EVERY=\(faults)")")
exit(reports.allSatisfy(\.isClean) ? 0 : 1)
