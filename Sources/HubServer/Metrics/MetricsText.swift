internal import HubCore

/// Prometheus' text format, version 0.0.4: families of samples with their help and type. Pure.
///
/// A family is written once, with all its samples. Labels come from closed sets or from the configuration, never from what clients
/// or backends send.
struct MetricsText {
    /// One line: labels in the order of writing, and a value.
    struct Sample {
        var labels: [(name: String, value: String)]
        var value: Double

        /// - Parameter labels: in the order of writing; names must be valid label names.
        init(_ value: some BinaryInteger, _ labels: [(name: String, value: String)] = []) {
            self.value = Double(value)
            self.labels = labels
        }

        init(_ value: Double, _ labels: [(name: String, value: String)] = []) {
            self.value = value
            self.labels = labels
        }
    }

    private enum Kind: String { case counter, gauge, histogram }

    /// The families written so far.
    private(set) var text = ""
    private var families: Set<String> = []

    /// A count that only grows until the process ends; the name ends with `_total`.
    mutating func counter(_ name: String, _ help: String, _ samples: [Sample]) {
        precondition(name.hasSuffix("_total"), "the counter \(name) is to end with _total")
        assert(samples.allSatisfy { $0.value >= 0 }, "the counter \(name) is below zero")
        family(name, help, .counter, samples)
    }

    /// A counter with one sample without labels.
    mutating func counter(_ name: String, _ help: String, _ value: some BinaryInteger) {
        counter(name, help, [Sample(value)])
    }

    /// A current value.
    mutating func gauge(_ name: String, _ help: String, _ samples: [Sample]) {
        precondition(!name.hasSuffix("_total"), "the gauge \(name) is not to end with _total")
        family(name, help, .gauge, samples)
    }

    /// A gauge with one sample without labels.
    mutating func gauge(_ name: String, _ help: String, _ value: some BinaryInteger) {
        gauge(name, help, [Sample(value)])
    }

    /// Durations; the name ends with `_seconds`.
    mutating func histogram(
        _ name: String, _ help: String, _ histograms: [(labels: [(name: String, value: String)], Histogram)]
    ) {
        precondition(name.hasSuffix("_seconds"), "the histogram \(name) is to end with _seconds")
        head(name, help, .histogram)
        for (labels, histogram) in histograms {
            var count: UInt64 = 0
            for (index, own) in histogram.counts.enumerated() {
                count += own
                let bound = index < Histogram.bounds.count ? Self.number(seconds(Histogram.bounds[index])) : "+Inf"
                line("\(name)_bucket", labels + [("le", bound)], Double(count))
            }
            assert(count == histogram.count, "\(name) adds up to \(count) of \(histogram.count) durations")
            line("\(name)_sum", labels, seconds(histogram.sum))
            line("\(name)_count", labels, Double(count))
        }
    }

    private func seconds(_ nanoseconds: UInt64) -> Double { Double(nanoseconds) / 1_000_000_000 }

    // MARK: Lines

    private mutating func family(_ name: String, _ help: String, _ kind: Kind, _ samples: [Sample]) {
        head(name, help, kind)
        for sample in samples { line(name, sample.labels, sample.value) }
    }

    private mutating func head(_ name: String, _ help: String, _ kind: Kind) {
        precondition(families.insert(name).inserted, "the metric \(name) is written twice")
        text += "# HELP \(name) \(Self.escaped(help, quote: false))\n# TYPE \(name) \(kind.rawValue)\n"
    }

    private mutating func line(_ name: String, _ labels: [(name: String, value: String)], _ value: Double) {
        text += name
        if !labels.isEmpty {
            text += "{"
            for (index, label) in labels.enumerated() {
                if index > 0 { text += "," }
                text += "\(label.name)=\"\(Self.escaped(label.value, quote: true))\""
            }
            text += "}"
        }
        text += " \(Self.number(value))\n"
    }

    /// Whole numbers have no fraction. Every `Double` survives a round trip.
    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        if value == value.rounded(), abs(value) < 1e15 { return String(Int64(value)) }
        return String(value)
    }

    private static func escaped(_ text: String, quote: Bool) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            case "\"" where quote: escaped += "\\\""
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
