/// Runs that belong together, such as a comparison: the rounds of each server and the targets for their ratios.
package struct ReportSet: Codable, Sendable, Equatable {
    package var title: String
    /// Warnings of the whole set, in addition to those of the runs.
    package var warnings: [String]
    package var targets: [Target]
    package var reports: [LoadReport]

    package init(title: String, reports: [LoadReport], targets: [Target] = [], warnings: [String] = []) {
        self.title = title
        self.reports = reports
        self.targets = targets
        self.warnings = warnings
    }

    /// A ratio of two servers' figures in the same round, and the bounds of its median, if any.
    package struct Target: Codable, Sendable, Equatable {
        /// Name of the ratio.
        package var name: String
        /// Scenario and figure that both servers share.
        package var scenario: String
        package var figure: String
        /// Server in the numerator; `base` is in the denominator.
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

    /// The rounds of one server in one scenario, in the order of running.
    package struct Server: Sendable {
        package var name: String
        package var rounds: [LoadReport]

        /// The rounds' values of one figure; rounds without it are left out.
        package func values(of figure: String) -> [Double] {
            rounds.flatMap { $0.figures.filter { $0.name == figure }.map(\.value) }
        }
    }

    /// Scenarios and servers in the order of their first run. Servers differ by dialect, or by URL if all dialects are the same.
    package var groups: [Group] {
        let areDialectsTelling = Set(reports.map(\.dialect)).count > 1 || Set(reports.map(\.target)).count == 1
        return ordered(reports, by: \.scenario).map { scenario, runs in
            Group(
                scenario: scenario,
                servers: ordered(runs, by: { areDialectsTelling ? $0.dialect : $0.target }).map { Server(name: $0, rounds: $1) })
        }
    }

    /// The ratios of all rounds with both figures, and whether the median meets the bounds (nil: there are none). Nil if no round has both.
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

    /// Each warning once, with the number of runs if several gave it.
    package var allWarnings: [String] {
        warnings
            + ordered(reports.flatMap(\.warnings), by: { $0 }).map { text, those in
                those.count == 1 ? text : "\(text) (\(those.count) runs)"
            }
    }
}

extension ReportSet.Target {
    /// `<= 1.15`, the form printed next to the ratio.
    package var bound: String {
        [atMost.map { "<= \(NumberText.short($0))" }, atLeast.map { ">= \(NumberText.short($0))" }].compactMap(\.self)
            .joined(separator: ", ")
    }
}

extension LoadReport {
    /// The value of the figure with this name; nil if absent.
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
