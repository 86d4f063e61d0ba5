/// Numbered due times in a binary heap, the soonest first.
struct Agenda {
    private var items: [(at: Int64, number: UInt64)] = []

    var first: (at: Int64, number: UInt64)? { items.first }
    var count: Int { items.count }

    mutating func add(_ at: Int64, _ number: UInt64) {
        items.append((at, number))
        var child = items.count - 1
        while child > 0, items[child].at < items[(child - 1) / 2].at {
            items.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func removeFirst() {
        guard let last = items.popLast(), !items.isEmpty else { return }
        items[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < items.count && items[child].at < items[least].at { least = child }
            if least == parent { return }
            items.swapAt(parent, least)
            parent = least
        }
    }

    /// Removes the entries for which the condition fails.
    mutating func keep(_ condition: (_ number: UInt64, _ at: Int64) -> Bool) {
        // Sorted, an array is a heap.
        items = items.filter { condition($0.number, $0.at) }.sorted { $0.at < $1.at }
    }
}
