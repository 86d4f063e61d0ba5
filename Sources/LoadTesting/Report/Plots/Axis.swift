internal import Foundation

/// The mapping of values to places on a drawing, and its labels.
struct Axis {
    struct Tick: Equatable {
        var value: Double
        /// Nil: a line without a label.
        var label: String?
    }

    var ticks: [Tick]
    private var position: (Double) -> Double
    private var from: Double
    private var to: Double

    /// Place on the axis from 0 to 1; values outside are clamped.
    func share(_ value: Double) -> Double {
        let low = position(from)
        return min(1, max(0, (position(value) - low) / (position(to) - low)))
    }

    /// From zero to a round number at or above `highest`, with about `count` steps of 1, 2 or 5.
    static func linear(to highest: Double, count: Int = 5, label: (Double) -> String) -> Axis {
        let top = highest > 0 && highest.isFinite ? highest : 1
        let rough = top / Double(max(1, count))
        let power = pow(10, floor(log10(rough)))
        let step = ([1, 2, 5, 10].first { $0 * power >= rough * 0.999 } ?? 10) * power
        let steps = Int((top / step * 0.9999).rounded(.up))
        let ticks = (0...max(1, steps)).map { Tick(value: Double($0) * step, label: label(Double($0) * step)) }
        return Axis(ticks: ticks, position: { $0 }, from: 0, to: Double(max(1, steps)) * step)
    }

    /// Time from zero to exactly `seconds`.
    static func seconds(to seconds: Double) -> Axis {
        var axis = linear(to: seconds, count: 8) { "\(NumberText.short($0)) s" }
        axis.to = seconds > 0 ? seconds : 1
        axis.ticks.removeAll { $0.value > axis.to }
        return axis
    }

    /// Decades around `lowest` and `highest`, with bounds at 1, 2 or 5 within a decade; lines at every digit. From 1 to 9 * 10^12.
    static func logarithmic(from lowest: Double, to highest: Double, label: (Double) -> String) -> Axis {
        let low = max(lowest, 1)
        let high = max(highest, low * 1.01)
        let marks = (0...12).flatMap { power in (1...9).map { (digit: $0, value: Double($0) * pow(10, Double(power))) } }
        let bounds = marks.filter { [1, 2, 5].contains($0.digit) }.map(\.value)
        let from = bounds.last { $0 <= low } ?? 1
        let to = bounds.first { $0 >= high } ?? high
        let labelled: Set = to / from > 1_000 ? [1] : [1, 2, 5]
        let ticks = marks.filter { (from...to).contains($0.value) }.map { mark in
            Tick(value: mark.value, label: labelled.contains(mark.digit) ? label(mark.value) : nil)
        }
        return Axis(ticks: ticks, position: { log10(max($0, from)) }, from: from, to: to)
    }

    /// Percentiles by the share above: 90, 99 and 99.9 % are equally far apart. 100 % is at the end.
    static func percentiles(to highest: Double) -> Axis {
        let nines = min(6, max(1, nines(highest)))
        var ticks = [Tick(value: 0, label: "0 %"), Tick(value: 50, label: "50 %"), Tick(value: 90, label: "90 %")]
        for percent in [99, 99.9, 99.99, 99.999, 99.9999] where Axis.nines(percent) <= nines + 0.001 {
            ticks.append(Tick(value: percent, label: "\(percent == 99 ? "99" : String(percent)) %"))
        }
        // Place of 100 %: far enough after the last percentile to keep the labels apart.
        let end = nines + max(0.3, nines * 0.12)
        ticks.append(Tick(value: 100, label: "max"))
        return Axis(ticks: ticks, position: { min(end, Axis.nines($0)) }, from: 0, to: 100)
    }

    /// 1 for 90, 2 for 99; infinite for 100.
    static func nines(_ percent: Double) -> Double {
        percent >= 100 ? .infinity : -log10(1 - max(0, percent) / 100)
    }
}
