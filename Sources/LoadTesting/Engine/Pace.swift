/// Something a worker does at times of its own: after a turn it looks which are due.
final class Pace {
    /// Nanoseconds of the monotonic clock.
    fileprivate(set) var due: UInt64
    /// Says when it wants to run again; nil: never.
    private let fire: (UInt64) -> UInt64?

    init(due: UInt64, fire: @escaping (UInt64) -> UInt64?) {
        self.due = due
        self.fire = fire
    }

    /// False when it is over.
    func run(now: UInt64) -> Bool {
        guard let next = fire(now) else { return false }
        due = next
        return true
    }

    /// Takes what is due of a schedule, oldest first, until it is told to stop.
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
