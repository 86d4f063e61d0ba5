/// Names with values, in the order in which the names came.
struct OrderedTable: Sendable {
    private var places: [[UInt8]: Int] = [:]
    /// Nil where a name was removed.
    private var items: [(name: [UInt8], value: [UInt8])?] = []

    var count: Int { places.count }
    /// In order.
    var all: some Sequence<(name: [UInt8], value: [UInt8])> { items.lazy.compactMap(\.self) }

    func contains(_ name: [UInt8]) -> Bool { places[name] != nil }

    subscript(name: [UInt8]) -> [UInt8]? { places[name].map { items[$0]!.value } }

    /// - Returns: whether the name is new.
    mutating func set(_ name: [UInt8], _ value: [UInt8]) -> Bool {
        if let place = places[name] {
            items[place] = (name, value)
            return false
        }
        places[name] = items.count
        items.append((name, value))
        return true
    }

    /// - Returns: whether the name was there.
    mutating func remove(_ name: [UInt8]) -> Bool {
        guard let place = places.removeValue(forKey: name) else { return false }
        items[place] = nil
        while let last = items.last, last == nil { items.removeLast() }
        if items.count > 8, items.count > 2 * places.count {
            items.removeAll { $0 == nil }
            for (place, item) in items.enumerated() { places[item!.name] = place }
        }
        return true
    }
}
