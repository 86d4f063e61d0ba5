/// Runs that belong together, as a comparison of servers has them: the rounds of each server and what their ratios should be.
package struct ReportSet: Codable, Sendable, Equatable {
    package var title: String
    /// Of the whole, in addition to those of the runs.
    package var warnings: [String]
    package var targets: [Target]
    package var reports: [LoadReport]

    package init(title: String, reports: [LoadReport], targets: [Target] = [], warnings: [String] = []) {
        self.title = title
        self.reports = reports
        self.targets = targets
        self.warnings = warnings
    }

    /// A figure of one server as a multiple of another's in the same round, and the bound of the median if there is one.
    package struct Target: Codable, Sendable, Equatable {
        package var name: String
        package var scenario: String
        package var figure: String
        package var server: String
        package var base: String
        package var atMost: Double?
        package var atLeast: Double?

        package init(
            name: String, scenario: String, figure: String, server: String, base: String, atMost: Double? = nil, atLeast: Double? = nil
        ) {
            self.name = name
            self.scenario = scenario
            self.figure = figure
            self.server = server
            self.base = base
            self.atMost = atMost
            self.atLeast = atLeast
        }
    }

    /// All runs of one scenario.
    package struct Group: Sendable {
        package var scenario: String
        package var servers: [Server]
    }

    /// The rounds of one server in one scenario, in the order in which they ran.
    package struct Server: Sendable {
        package var name: String
        package var rounds: [LoadReport]

        package func values(of figure: String) -> [Double] {
            rounds.flatMap { $0.figures.filter { $0.name == figure }.map(\.value) }
        }
    }

    /// Scenarios and servers in the order of their first run. Servers are told apart by dialect, or by URL where the dialect is the same.
    package var groups: [Group] {
        let areDialectsTelling = Set(reports.map(\.dialect)).count > 1 || Set(reports.map(\.target)).count == 1
        return ordered(reports, by: \.scenario).map { scenario, runs in
            Group(
                scenario: scenario,
                servers: ordered(runs, by: { areDialectsTelling ? $0.dialect : $0.target }).map { Server(name: $0, rounds: $1) })
        }
    }

    /// The ratio of every round that has both, and whether the median keeps the bound (nil: there is none); nil when no round has both.
    package func outcome(of target: Target) -> (ratio: Spread, isMet: Bool?)? {
        guard let group = groups.first(where: { $0.scenario == target.scenario }),
            let server = group.servers.first(where: { $0.name == target.server }),
            let base = group.servers.first(where: { $0.name == target.base })
        else {
            return nil
        }
        let ratios = zip(server.rounds, base.rounds).compactMap { mine, theirs -> Double? in
            guard let value = mine.value(of: target.figure), let divisor = theirs.value(of: target.figure), divisor != 0 else {
                return nil
            }
            return value / divisor
        }
        guard let spread = Spread(ratios) else {
            return nil
        }
        guard target.atMost != nil || target.atLeast != nil else {
            return (spread, nil)
        }
        return (spread, spread.median <= target.atMost ?? .infinity && spread.median >= target.atLeast ?? -.infinity)
    }

    /// Each warning once, with how many runs gave it when it was more than one.
    package var allWarnings: [String] {
        warnings
            + ordered(reports.flatMap(\.warnings), by: { $0 }).map { text, those in
                those.count == 1 ? text : "\(text) (\(those.count) runs)"
            }
    }
}

extension ReportSet.Target {
    /// `<= 1.15`, as printed beside the ratio.
    package var bound: String {
        [atMost.map { "<= \(NumberText.short($0))" }, atLeast.map { ">= \(NumberText.short($0))" }].compactMap(\.self)
            .joined(separator: ", ")
    }
}

extension LoadReport {
    package func value(of figure: String) -> Double? {
        figures.first { $0.name == figure }?.value
    }
}

/// Groups in the order of their first element.
func ordered<Element, Key: Hashable>(_ elements: [Element], by key: (Element) -> Key) -> [(Key, [Element])] {
    var places: [Key: Int] = [:]
    var result: [(Key, [Element])] = []
    for element in elements {
        let name = key(element)
        if let place = places[name] {
            result[place].1.append(element)
        } else {
            places[name] = result.count
            result.append((name, [element]))
        }
    }
    return result
}
