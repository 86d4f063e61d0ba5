internal import HubDelivery

/// Deliveries that wait for their time or for their lane. Each is found by its name, so one that has lost its purpose costs no search.
///
/// Due deliveries are handed out urgent ones first, then the soonest due. A delivery that waits for a lane comes up as due only at the end
/// of its life. Until then it is handed out to a caller that asks for its lane: urgent ones first, then the first to expire.
struct OutboxQueue {
    private typealias Place = OutboxHeap.Place

    /// A delivery, or none: then the ticket is 0, which no place has.
    private struct Slot {
        var delivery: PushRecord?
        var ticket: UInt64 = 0
        var isParked = false
        /// Hash of the delivery's nid.
        var key = 0
        /// Slot of another device of the same nid; nil: this slot is the last.
        var next: Int?
    }

    private var slots: [Slot] = []
    private var free: [Int] = []
    /// Slot of the first of the participant's devices, 25 at most, by the nid's hash. Slots of another nid are passed over.
    private var chains: [Int: Int] = [:]
    private var urgent = OutboxHeap()
    private var others = OutboxHeap()
    private var lanes: [PushRoute: OutboxHeap] = [:]
    private var lastTicket: UInt64 = 0
    /// Deliveries that wait for a lane, a part of `count`.
    private(set) var parkedCount = 0

    var count: Int { slots.count - free.count }

    /// Stale places that a heap may have beyond the number of deliveries.
    private static let slack = 1024

    /// Makes room for so many more at once.
    mutating func reserve(_ more: Int) {
        guard more > Self.slack else { return }
        slots.reserveCapacity(count + more)
        chains.reserveCapacity(count + more)
    }

    /// Adds a delivery that waits for its due time, in the place of one with the same nid and device. Costs the logarithm of the count.
    mutating func insert(_ delivery: PushRecord) {
        _ = place(delivery, at: delivery.dueAt, isParked: false)
    }

    /// Adds a delivery that is due and waits for its lane, in the place of one with the same nid and device.
    mutating func park(_ delivery: PushRecord, on route: PushRoute) {
        let end = delivery.timing?.expiresAt ?? delivery.dueAt
        var place = place(delivery, at: end, isParked: true)
        place.group = delivery.isUrgent ? 0 : 1
        lanes[route, default: OutboxHeap()].insert(place)
        if let heap = lanes[route], heap.count > 2 * count + Self.slack {
            let slots = slots
            lanes[route]?.keep { Self.isCurrent($0, slots) }
        }
    }

    private mutating func place(_ delivery: PushRecord, at time: Int64, isParked: Bool) -> Place {
        let key = delivery.nid.hashValue
        let first = chains[key]
        var found = first
        while let slot = found, !isHere(slot, delivery.nid, delivery.device) { found = slots[slot].next }
        lastTicket += 1
        let slot: Int
        if let found {
            if slots[found].isParked { parkedCount -= 1 }
            slot = found
        } else {
            slot = free.popLast() ?? slots.count
            if slot == slots.count { slots.append(Slot()) }
            slots[slot].key = key
            slots[slot].next = first
            chains[key] = slot
        }
        slots[slot].delivery = delivery
        slots[slot].ticket = lastTicket
        slots[slot].isParked = isParked
        if isParked { parkedCount += 1 }
        let place = Place(time: time, committedAt: delivery.timing?.committedAt ?? 0, ticket: lastTicket, slot: slot)
        if delivery.isUrgent { urgent.insert(place) } else { others.insert(place) }
        if urgent.count + others.count > 2 * count + Self.slack {
            let slots = slots
            urgent.keep { Self.isCurrent($0, slots) }
            others.keep { Self.isCurrent($0, slots) }
        }
        return place
    }

    /// Removes what is due, at most `limit`: urgent ones first, then the soonest.
    /// - Parameter now: milliseconds since 1970.
    mutating func takeDue(now: Int64, limit: Int) -> [PushRecord] {
        var due: [PushRecord] = []
        while due.count < limit, let place = Self.first(of: &urgent, slots), place.time <= now {
            if let delivery = take(place.slot) { due.append(delivery) }
        }
        while due.count < limit, let place = Self.first(of: &others, slots), place.time <= now {
            if let delivery = take(place.slot) { due.append(delivery) }
        }
        return due
    }

    /// The soonest time that something is due at, in milliseconds since 1970; nil when nothing waits.
    mutating func nextDue() -> Int64? {
        switch (Self.first(of: &urgent, slots)?.time, Self.first(of: &others, slots)?.time) {
        case (let urgent?, let other?): min(urgent, other)
        case (let urgent, let other): urgent ?? other
        }
    }

    // MARK: Lanes

    /// Those that deliveries wait for.
    var routes: [PushRoute] { Array(lanes.keys) }

    func hasParked(on route: PushRoute) -> Bool { lanes[route] != nil }

    /// Whether an urgent delivery that waits for the lane goes before any that comes now.
    func hasUrgentParked(on route: PushRoute) -> Bool { lanes[route]?.first?.group == 0 }

    /// Removes what waits for a lane, urgent ones first, then what expires first.
    /// - Parameters:
    ///   - count: how many at most.
    ///   - urgent: how many at most as long as they are urgent; at least `count`.
    mutating func takeParked(on route: PushRoute, count: Int, urgent: Int) -> [PushRecord] {
        guard var heap = lanes.removeValue(forKey: route) else { return [] }
        var taken: [PushRecord] = []
        while let place = heap.first {
            if Self.isCurrent(place, slots) {
                guard taken.count < (place.group == 0 ? urgent : count) else {
                    lanes[route] = heap
                    return taken
                }
                if let delivery = take(place.slot) { taken.append(delivery) }
            }
            _ = heap.removeFirst()
        }
        return taken
    }

    /// Moves all times. Costs as much as what waits.
    mutating func shift(by milliseconds: Int64) {
        for slot in slots.indices { slots[slot].delivery = slots[slot].delivery?.shifted(by: milliseconds) }
        urgent.shift(by: milliseconds)
        others.shift(by: milliseconds)
        for route in lanes.keys { lanes[route]?.shift(by: milliseconds) }
    }

    /// All that waits for its due time, in no particular order.
    var unparked: [PushRecord] { slots.compactMap { $0.isParked ? nil : $0.delivery } }

    /// All that waits, in no particular order.
    var all: [PushRecord] { slots.compactMap(\.delivery) }

    // MARK: For metrics, at the cost of looking through all of them

    /// When the one was due that is due for the longest, in milliseconds since 1970.
    var oldestDue: Int64? { slots.lazy.compactMap(\.delivery?.dueAt).min() }

    func parkedCounts() -> [PushRoute: Int] {
        lanes.mapValues { heap in heap.count(where: { Self.isCurrent($0, slots) }) }
    }

    // MARK: By name

    /// Removes a notification, on one device or on all of them.
    mutating func remove(nid: String, device: String? = nil) -> [PushRecord] {
        var removed: [PushRecord] = []
        var found = chains[nid.hashValue]
        while let slot = found {
            found = slots[slot].next
            if isHere(slot, nid, device), let delivery = take(slot) { removed.append(delivery) }
        }
        return removed
    }

    /// Whether the notification waits on that device.
    func contains(_ delivery: PushRecord) -> Bool {
        var found = chains[delivery.nid.hashValue]
        while let slot = found {
            if isHere(slot, delivery.nid, delivery.device) { return true }
            found = slots[slot].next
        }
        return false
    }

    mutating func removeAll() { self = OutboxQueue(lastTicket: lastTicket) }

    init() {}

    /// - Parameter lastTicket: goes on, so that no place of before is taken for one of now.
    private init(lastTicket: UInt64) { self.lastTicket = lastTicket }

    /// - Parameter device: nil: any.
    private func isHere(_ slot: Int, _ nid: String, _ device: String?) -> Bool {
        guard let delivery = slots[slot].delivery, delivery.nid == nid else { return false }
        return device == nil || delivery.device == device
    }

    /// Empties a slot; its places are passed over when they come up.
    private mutating func take(_ slot: Int) -> PushRecord? {
        guard let delivery = slots[slot].delivery.take() else { return nil }
        let (key, next) = (slots[slot].key, slots[slot].next)
        if let first = chains[key], first != slot {
            var before = first
            while let following = slots[before].next, following != slot { before = following }
            slots[before].next = next
        } else {
            chains[key] = next
        }
        if slots[slot].isParked { parkedCount -= 1 }
        slots[slot] = Slot()
        free.append(slot)
        // The memory of a large event goes with its last delivery.
        if count == 0, slots.count > Self.slack { removeAll() }
        return delivery
    }

    private static func isCurrent(_ place: Place, _ slots: [Slot]) -> Bool {
        place.slot < slots.count && slots[place.slot].ticket == place.ticket
    }

    /// Passes over what has been taken away.
    private static func first(of heap: inout OutboxHeap, _ slots: [Slot]) -> Place? {
        while let place = heap.first {
            if isCurrent(place, slots) { return place }
            _ = heap.removeFirst()
        }
        return nil
    }
}

extension PushRecord {
    var isUrgent: Bool { timing?.isUrgent ?? false }

    /// - Parameter now: milliseconds since 1970.
    func isExpired(now: Int64) -> Bool { timing.map { $0.expiresAt <= now } ?? false }
}
