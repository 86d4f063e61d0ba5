internal import HubDelivery

/// Deliveries that wait for their time or for their lane, found by their names, so that one that has no purpose any more costs no
/// search.
///
/// Of what is due, urgent ones are handed out first, then the soonest due. What waits for a lane has no due time but the end of its
/// life, at which it comes up as due; until then it is handed out when somebody asks for that lane's: urgent ones first, then what
/// expires first.
struct DeliveryQueue {
    private typealias Place = DeliveryHeap.Place

    private struct Entry {
        let delivery: DeliveryRecord
        let ticket: UInt64
        let isParked: Bool
    }

    /// By nid: the participant's devices, 25 at most.
    private var entries: [String: [Entry]] = [:]
    private var urgent = DeliveryHeap()
    private var others = DeliveryHeap()
    private var lanes: [PushRoute: DeliveryHeap] = [:]
    private var lastTicket: UInt64 = 0
    private(set) var count = 0
    /// Of these, what waits for a lane.
    private(set) var parkedCount = 0

    /// Stale places that a heap may have beyond the number of deliveries.
    private static let slack = 1024

    /// Adds a delivery that waits for its due time, in the place of one with the same nid and device. Costs the logarithm of the count.
    mutating func insert(_ delivery: DeliveryRecord) {
        place(delivery, at: delivery.dueAt, isParked: false)
    }

    /// Adds a delivery that is due and waits for its lane, in the place of one with the same nid and device.
    mutating func park(_ delivery: DeliveryRecord, on route: PushRoute) {
        let end = delivery.message?.expiresAt ?? delivery.dueAt
        place(delivery, at: end, isParked: true)
        lanes[route, default: DeliveryHeap()].insert(
            Place(
                group: delivery.isUrgent ? 0 : 1, time: end, committedAt: delivery.message?.committedAt ?? 0, ticket: lastTicket,
                nid: delivery.nid, device: delivery.device))
        if let heap = lanes[route], heap.count > 2 * count + Self.slack {
            let entries = entries
            lanes[route]?.keep { Self.isCurrent($0, entries) }
        }
    }

    private mutating func place(_ delivery: DeliveryRecord, at time: Int64, isParked: Bool) {
        _ = remove(nid: delivery.nid, device: delivery.device)
        lastTicket += 1
        entries[delivery.nid, default: []].append(Entry(delivery: delivery, ticket: lastTicket, isParked: isParked))
        count += 1
        if isParked { parkedCount += 1 }
        let place = Place(
            time: time, committedAt: delivery.message?.committedAt ?? 0, ticket: lastTicket, nid: delivery.nid, device: delivery.device)
        if delivery.isUrgent { urgent.insert(place) } else { others.insert(place) }
        if urgent.count + others.count > 2 * count + Self.slack {
            let entries = entries
            urgent.keep { Self.isCurrent($0, entries) }
            others.keep { Self.isCurrent($0, entries) }
        }
    }

    /// Removes what is due, at most `limit`: urgent ones first, then the soonest.
    /// - Parameter now: milliseconds since 1970.
    mutating func takeDue(now: Int64, limit: Int) -> [DeliveryRecord] {
        var due: [DeliveryRecord] = []
        while due.count < limit, let place = Self.first(of: &urgent, entries), place.time <= now {
            _ = urgent.removeFirst()
            due += remove(nid: place.nid, device: place.device)
        }
        while due.count < limit, let place = Self.first(of: &others, entries), place.time <= now {
            _ = others.removeFirst()
            due += remove(nid: place.nid, device: place.device)
        }
        return due
    }

    /// The soonest time that something is due at, in milliseconds since 1970; nil when nothing waits.
    mutating func nextDue() -> Int64? {
        switch (Self.first(of: &urgent, entries)?.time, Self.first(of: &others, entries)?.time) {
        case (let urgent?, let other?): min(urgent, other)
        case (let urgent, let other): urgent ?? other
        }
    }

    // MARK: Lanes

    /// Those that deliveries wait for.
    var routes: [PushRoute] { Array(lanes.keys) }

    func hasParked(on route: PushRoute) -> Bool { lanes[route] != nil }

    /// Removes what waits for a lane, urgent ones first, then what expires first.
    /// - Parameters:
    ///   - count: how many at most.
    ///   - urgent: how many at most as long as they are urgent; at least `count`.
    mutating func takeParked(on route: PushRoute, count: Int, urgent: Int) -> [DeliveryRecord] {
        var taken: [DeliveryRecord] = []
        while let place = lanes[route]?.first {
            guard Self.isCurrent(place, entries) else {
                _ = lanes[route]?.removeFirst()
                continue
            }
            guard taken.count < (place.group == 0 ? urgent : count) else { return taken }
            _ = lanes[route]?.removeFirst()
            taken += remove(nid: place.nid, device: place.device)
        }
        lanes[route] = nil
        return taken
    }

    // MARK: For metrics, at the cost of looking through all of them

    /// When the one was due that is due for the longest, in milliseconds since 1970.
    var oldestDue: Int64? { entries.values.lazy.flatMap(\.self).map(\.delivery.dueAt).min() }

    func parkedCounts() -> [PushRoute: Int] {
        lanes.mapValues { heap in heap.count(where: { Self.isCurrent($0, entries) }) }
    }

    // MARK: By name

    /// Removes a notification, on one device or on all of them.
    mutating func remove(nid: String, device: String? = nil) -> [DeliveryRecord] {
        guard let found = entries[nid] else { return [] }
        let kept = device.map { device in found.filter { $0.delivery.device != device } } ?? []
        entries[nid] = kept.isEmpty ? nil : kept
        count -= found.count - kept.count
        let removed = found.filter { device == nil || $0.delivery.device == device }
        parkedCount -= removed.count { $0.isParked }
        return removed.map(\.delivery)
    }

    /// Whether the notification waits on that device.
    func contains(_ delivery: DeliveryRecord) -> Bool {
        entries[delivery.nid]?.contains { $0.delivery.device == delivery.device } ?? false
    }

    mutating func removeAll() {
        (entries, urgent, others, lanes, count, parkedCount) = ([:], DeliveryHeap(), DeliveryHeap(), [:], 0, 0)
    }

    private static func isCurrent(_ place: Place, _ entries: [String: [Entry]]) -> Bool {
        entries[place.nid]?.contains { $0.ticket == place.ticket } ?? false
    }

    /// Passes over what has been taken away.
    private static func first(of heap: inout DeliveryHeap, _ entries: [String: [Entry]]) -> Place? {
        while let place = heap.first {
            if isCurrent(place, entries) { return place }
            _ = heap.removeFirst()
        }
        return nil
    }
}

extension DeliveryRecord {
    var isUrgent: Bool { message?.isUrgent ?? false }

    /// - Parameter now: milliseconds since 1970.
    func isExpired(now: Int64) -> Bool { message.map { $0.expiresAt <= now } ?? false }
}
