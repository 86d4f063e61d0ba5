/// The median, lowest and highest of several rounds.
package struct Spread: Sendable, Equatable {
    package var median: Double
    package var lowest: Double
    package var highest: Double
    package var count: Int

    /// Nil without values.
    package init?(_ values: [Double]) {
        let sorted = values.filter(\.isFinite).sorted()
        guard let lowest = sorted.first, let highest = sorted.last else {
            return nil
        }
        self.lowest = lowest
        self.highest = highest
        count = sorted.count
        let middle = sorted.count / 2
        median = sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
    }

    /// `0.41 (0.39 to 0.44)`; only the median if all rounds print the same.
    package func text(_ number: (Double) -> String = NumberText.plain) -> String {
        let middle = number(median)
        let ends = (number(lowest), number(highest))
        return ends == (middle, middle) ? middle : "\(middle) (\(ends.0) to \(ends.1))"
    }
}
