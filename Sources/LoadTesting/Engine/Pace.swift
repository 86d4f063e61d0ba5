/// A worker's task with times of its own: after each turn the worker runs the due ones.
final class Pace {
    /// Nanoseconds of the monotonic clock.
    fileprivate(set) var due: UInt64
    /// Runs the task and returns its next due time; nil: never.
    private let fire: (UInt64) -> UInt64?

    init(due: UInt64, fire: @escaping (UInt64) -> UInt64?) {
        self.due = due
        self.fire = fire
    }

    /// Runs the task. False if it has ended.
    func run(now: UInt64) -> Bool {
        guard let next = fire(now) else { return false }
        due = next
        return true
    }

    /// Runs `each` for every due time of a schedule, oldest first, until it returns false.
    convenience init(_ loop: OpenLoop, each: @escaping (_ due: UInt64) -> Bool) {
        var loop = loop
        self.init(due: loop.nextDue) { now in
            while let due = loop.take(now: now) {
                if !each(due) { return nil }
            }
            return loop.nextDue
        }
    }
}
