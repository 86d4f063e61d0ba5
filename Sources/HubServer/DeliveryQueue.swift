internal import HubDelivery

/// Deliveries that wait for their time: handed out soonest due first, and found by their names, so that one that has no purpose
/// any more costs no search.
struct DeliveryQueue {
    private struct Entry {
        let delivery: DeliveryRecord
        let ticket: UInt64
    }

    private struct Place {
        let dueAt: Int64
        let committedAt: Int64
        let ticket: UInt64
        let nid: String
        let device: String

        /// Of what is due at one time, as at the end of quiet hours, the older event goes first.
        static func < (left: Place, right: Place) -> Bool {
            (left.dueAt, left.committedAt, left.ticket) < (right.dueAt, right.committedAt, right.ticket)
        }
    }

    /// By nid: the participant's devices, 25 at most.
    private var entries: [String: [Entry]] = [:]
    /// A binary heap. Places of what has been taken away stay until they come up, or outnumber the others.
    private var heap: [Place] = []
    private var lastTicket: UInt64 = 0
    private(set) var count = 0

    /// Adds a delivery, in the place of one with the same nid and device. Costs the logarithm of the count.
    mutating func insert(_ delivery: DeliveryRecord) {
        _ = remove(nid: delivery.nid, device: delivery.device)
        lastTicket += 1
        entries[delivery.nid, default: []].append(Entry(delivery: delivery, ticket: lastTicket))
        count += 1
        heap.append(
            Place(
                dueAt: delivery.dueAt, committedAt: delivery.message?.committedAt ?? 0, ticket: lastTicket, nid: delivery.nid,
                device: delivery.device))
        rise(from: heap.count - 1)
        if heap.count > 2 * count + 1024 { compact() }
    }

    /// Removes the soonest ones that are due, at most `limit`.
    /// - Parameter now: milliseconds since 1970.
    mutating func takeDue(now: Int64, limit: Int) -> [DeliveryRecord] {
        var due: [DeliveryRecord] = []
        while due.count < limit, let next = nextDue(), next <= now {
            let place = removeFirst()
            due += remove(nid: place.nid, device: place.device)
        }
        return due
    }

    /// The soonest time that something is due at, in milliseconds since 1970; nil when nothing waits.
    mutating func nextDue() -> Int64? {
        while let place = heap.first {
            if isCurrent(place) { return place.dueAt }
            _ = removeFirst()
        }
        return nil
    }

    /// Removes a notification, on one device or on all of them.
    mutating func remove(nid: String, device: String? = nil) -> [DeliveryRecord] {
        guard let found = entries[nid] else { return [] }
        let kept = device.map { device in found.filter { $0.delivery.device != device } } ?? []
        entries[nid] = kept.isEmpty ? nil : kept
        count -= found.count - kept.count
        return found.map(\.delivery).filter { device == nil || $0.device == device }
    }

    /// Whether the notification waits on that device.
    func contains(_ delivery: DeliveryRecord) -> Bool {
        entries[delivery.nid]?.contains { $0.delivery.device == delivery.device } ?? false
    }

    mutating func removeAll() {
        (entries, heap, count) = ([:], [], 0)
    }

    // MARK: The heap

    private func isCurrent(_ place: Place) -> Bool { entries[place.nid]?.contains { $0.ticket == place.ticket } ?? false }

    private mutating func compact() {
        // An ordered array is a heap.
        heap = heap.filter { isCurrent($0) }.sorted(by: <)
    }

    private mutating func removeFirst() -> Place {
        heap.swapAt(0, heap.count - 1)
        let first = heap.removeLast()
        sink(from: 0)
        return first
    }

    private mutating func rise(from start: Int) {
        var index = start
        while index > 0, heap[index] < heap[(index - 1) / 2] {
            heap.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    private mutating func sink(from start: Int) {
        var index = start
        while true {
            let left = 2 * index + 1
            guard left < heap.count else { return }
            let smaller = left + 1 < heap.count && heap[left + 1] < heap[left] ? left + 1 : left
            guard heap[smaller] < heap[index] else { return }
            heap.swapAt(index, smaller)
            index = smaller
        }
    }
}
