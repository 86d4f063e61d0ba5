/// The counter of the demo: pairs of a person and a question.
package struct Score: Equatable, Sendable {
    /// Pairs whose person knows of the question.
    package var told = 0
    /// Pairs that were told on both surfaces; counted in `told` as well.
    package var toldTwice = 0
    /// Pairs whose person should know by now, and does not.
    package var missed = 0
    /// Pairs that have still time, or whose gateway keeps the notification.
    package var underWay = 0

    /// Nothing asked yet.
    package init() {}

    mutating func add(_ telling: Telling, isTimeUp: Bool) {
        switch telling.surface(isTimeUp: isTimeUp) {
        case .screen, .lock, .later: told += 1
        case .kept, .waiting: underWay += 1
        case .missed: missed += 1
        }
        if telling.isTwice { toldTwice += 1 }
    }
}
