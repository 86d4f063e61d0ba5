import HubDelivery

/// The recipients' state in a fan-out's row.
struct RecipientBits: Equatable {
    let count: Int
    let committedAt: Int64
    var confirmed: PlaceSet
    var pushed: PlaceSet
    /// Nil if no receipt was stored.
    var received: ReceiptTimes?
    /// Part of the row was unreadable and counts as empty.
    var isUnreadable: Bool

    /// Stand-in for an unreadable note: nobody is missed for it.
    static var unknownNote: RecipientNote { RecipientNote(state: nil, choice: .awaited) }

    /// More recipients than an event can have. A row with a higher count is damaged, and must not make the process reserve memory.
    static let countMax = 1 << 24

    /// - Parameters:
    ///   - count: the row's number of recipients.
    ///   - received: bytes of `ReceiptTimes`; none for no receipt.
    init(count: Int, committedAt: Int64, confirmed: [UInt8], pushed: [UInt8], received times: [UInt8]) {
        let count = Self.count(count)
        self.count = count
        self.committedAt = committedAt
        let confirmed = PlaceSet(bytes: confirmed, count: count)
        let pushed = PlaceSet(bytes: pushed, count: count)
        received = times.isEmpty ? nil : ReceiptTimes(bytes: times, count: count)
        isUnreadable = confirmed == nil || pushed == nil || received == nil && !times.isEmpty
        self.confirmed = confirmed ?? PlaceSet(count: count)
        self.pushed = pushed ?? PlaceSet(count: count)
    }

    mutating func apply(_ settlement: RecipientSettlement) {
        for confirmation in settlement.confirmed {
            let place = confirmation.recipient
            guard (0..<count).contains(place), !confirmed.contains(place) else { continue }
            confirmed.insert(place)
            if received == nil { received = ReceiptTimes(count: count) }
            received?.set(place, milliseconds: confirmation.at - committedAt)
        }
        for place in settlement.pushed where (0..<count).contains(place) { pushed.insert(place) }
    }

    /// The row's number of recipients; 0 if the value is impossible.
    static func count(_ count: Int) -> Int { (0...countMax).contains(count) ? count : 0 }

    static func unreadable(event: String) -> StorageError {
        StorageError(
            .unreadableRow, "who was told of an event cannot be read entirely; some may be told again (event \(event))")
    }
}
