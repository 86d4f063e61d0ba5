import DeliverySimulation
import Foundation

// Usage: tandem-simulate [--seed N] [--pairs N] [--break RULE]
var values: [String: String] = [:]
var arguments = Array(CommandLine.arguments.dropFirst())
while arguments.count >= 2, ["--seed", "--pairs", "--break"].contains(arguments[0]) {
    values[arguments[0]] = arguments[1]
    arguments.removeFirst(2)
}
let seed = values["--seed"].map { UInt64($0) } ?? UInt64.random(in: 0...UInt64.max)
let pairs = values["--pairs"].map { Int($0) } ?? 1_000_000
let broken = values["--break"].map { BrokenRule(rawValue: $0) }
guard arguments.isEmpty, let seed, let pairs, broken != .some(nil) else {
    let rules = BrokenRule.allCases.map(\.rawValue).joined(separator: ", ")
    FileHandle.standardError.write(Data("usage: tandem-simulate [--seed N] [--pairs N] [--break RULE]; rules: \(rules)\n".utf8))
    exit(64)
}
print("seed \(seed), \(pairs) pairs\(broken.flatMap { $0 }.map { ", broken: \($0.rawValue)" } ?? "")")
var settings = SimulationSettings(seed: seed, pairs: pairs)
settings.broken = broken.flatMap { $0 }
let began = ContinuousClock.now
let report = Simulation(settings).run()
let seconds = (ContinuousClock.now - began) / .seconds(1)
print(report.description)
print("run time        \(String(format: "%.1f", seconds)) s")
print("again with      make simulate SEED=\(seed) PAIRS=\(pairs)")
exit(report.isClean ? 0 : 1)
