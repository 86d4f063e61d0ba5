internal import HubCore
internal import HubDelivery

/// The outcomes of an event as numbers: how many recipients in which state, and when they were told.
enum OutcomeSummary {
    /// Width of a bin of the strip. Bin n holds what happened from n widths after the commit on, and the last bin everything later.
    static let stepMilliseconds: Int64 = 500
    /// Bins of 60 s, and one for later.
    static let binCount = 121

    static func make(_ outcomes: EventOutcomes) -> JSONValue {
        var decisions: [String: Int64] = [:]
        for recipient in outcomes.recipients { decisions[recipient.choice?.word ?? "unknown", default: 0] += 1 }
        return [
            "states": states(outcomes),
            "decisions": .object(decisions.mapValues { .int($0) }),
            "strip": [
                "step_ms": .int(stepMilliseconds),
                "confirmed": strip(outcomes.recipients.lazy.map(\.confirmedAfter)),
                "escalated": strip(outcomes.recipients.lazy.map(\.escalatedAfter)),
                "accepted": strip(outcomes.recipients.lazy.map(\.acceptedAfter)),
            ],
        ]
    }

    /// Recipients by state; states without any are left out.
    static func states(_ outcomes: EventOutcomes) -> JSONValue {
        var states: [String: Int64] = [:]
        for recipient in outcomes.recipients { states[recipient.state.rawValue, default: 0] += 1 }
        return .object(states.mapValues { .int($0) })
    }

    /// Pairs of a bin and its number of recipients; bins without any are left out.
    private static func strip(_ times: some Sequence<Int64?>) -> JSONValue {
        var bins = Array(repeating: Int64(0), count: binCount)
        for case let time? in times { bins[Int(min(max(0, time) / stepMilliseconds, Int64(binCount - 1)))] += 1 }
        return .array(bins.enumerated().filter { $0.element > 0 }.map { [.int(Int64($0.offset)), .int($0.element)] })
    }
}
