/// Actions by time; those of one time in the order in which they were planned.
struct ActionQueue<Action> {
    /// A heap by time and order. Actions are large, so the heap moves their places only.
    private var heap: [(at: Int64, order: UInt64, place: Int)] = []
    private var actions: [Action?] = []
    private var free: [Int] = []
    private var lastOrder: UInt64 = 0

    mutating func add(_ at: Int64, _ action: Action) {
        lastOrder += 1
        heap.append((at, lastOrder, keep(action)))
        var child = heap.count - 1
        while child > 0, isBefore(child, (child - 1) / 2) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func removeFirst() -> (Int64, Action)? {
        guard let last = heap.popLast() else { return nil }
        guard let first = heap.first else { return (last.at, take(last.place)) }
        heap[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && isBefore(child, least) { least = child }
            if least == parent { return (first.at, take(first.place)) }
            heap.swapAt(parent, least)
            parent = least
        }
    }

    private func isBefore(_ left: Int, _ right: Int) -> Bool { (heap[left].at, heap[left].order) < (heap[right].at, heap[right].order) }

    private mutating func keep(_ action: Action) -> Int {
        if let place = free.popLast() {
            actions[place] = action
            return place
        }
        actions.append(action)
        return actions.count - 1
    }

    private mutating func take(_ place: Int) -> Action {
        guard let action = actions[place].take() else { preconditionFailure("place \(place) is empty") }
        free.append(place)
        return action
    }
}
