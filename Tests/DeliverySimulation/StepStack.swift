/// The steps of a task's turn. Those that a step makes come before the rest.
struct StepStack<Step> {
    /// The next one is the last.
    private var reversed: [Step] = []

    init(_ steps: [Step] = []) { reversed = steps.reversed() }

    /// In the order in which they are taken.
    var all: [Step] { reversed.reversed() }

    mutating func next() -> Step? { reversed.popLast() }
    mutating func first(_ steps: [Step]) { reversed.append(contentsOf: steps.reversed()) }
}
