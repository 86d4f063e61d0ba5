/// Places of deliveries in some order, the first of which can be taken. A binary heap.
///
/// Places of what has been taken away elsewhere stay until they come up, or until `keep` throws them out. A place is plain numbers: a
/// heap of a hundred thousand moves seventeen of them for each delivery.
struct OutboxHeap {
    struct Place {
        /// Whether urgency goes before time: 0 before 1.
        var group: UInt8 = 0
        /// Milliseconds since 1970.
        let time: Int64
        let committedAt: Int64
        let ticket: UInt64
        /// Where the queue has the delivery, if the ticket there is the same still.
        let slot: Int

        /// The older event goes first if the times are equal, as at the end of quiet hours.
        static func < (left: Place, right: Place) -> Bool {
            if left.group != right.group { return left.group < right.group }
            if left.time != right.time { return left.time < right.time }
            if left.committedAt != right.committedAt { return left.committedAt < right.committedAt }
            return left.ticket < right.ticket
        }
    }

    private var places: [Place] = []

    var count: Int { places.count }
    var first: Place? { places.first }

    mutating func insert(_ place: Place) {
        places.append(place)
        rise(from: places.count - 1)
    }

    /// Only where there is one.
    mutating func removeFirst() -> Place {
        places.swapAt(0, places.count - 1)
        let first = places.removeLast()
        sink(from: 0)
        return first
    }

    /// Looks at every place.
    func count(where isCounted: (Place) -> Bool) -> Int { places.count(where: isCounted) }

    mutating func keep(where isKept: (Place) -> Bool) {
        // An ordered array is a heap.
        places = places.filter(isKept).sorted(by: <)
    }

    /// Moves all times; the order stays.
    mutating func shift(by milliseconds: Int64) {
        places = places.map {
            Place(
                group: $0.group, time: $0.time + milliseconds, committedAt: $0.committedAt + milliseconds, ticket: $0.ticket, slot: $0.slot)
        }
    }

    private mutating func rise(from start: Int) {
        var index = start
        while index > 0, places[index] < places[(index - 1) / 2] {
            places.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    private mutating func sink(from start: Int) {
        var index = start
        while true {
            let left = 2 * index + 1
            guard left < places.count else { return }
            let smaller = left + 1 < places.count && places[left + 1] < places[left] ? left + 1 : left
            guard places[smaller] < places[index] else { return }
            places.swapAt(index, smaller)
            index = smaller
        }
    }
}
