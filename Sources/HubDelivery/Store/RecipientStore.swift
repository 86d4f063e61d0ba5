/// The recipients with which an event is committed: one row, however many there are.
package struct RecipientOpening: Sendable, Equatable {
    /// The recipients in their order.
    package var snapshot: RecipientSnapshot
    /// One note per recipient, in the same order.
    package var notes: [RecipientNote]

    /// Recipients with different notes.
    /// - Parameter notes: as many as the snapshot has users.
    package init(snapshot: RecipientSnapshot, notes: [RecipientNote]) {
        precondition(notes.count == snapshot.users.count, "\(notes.count) notes for \(snapshot.users.count) recipients")
        self.snapshot = snapshot
        self.notes = notes
    }

    /// Recipients with the same note.
    package init(snapshot: RecipientSnapshot, note: RecipientNote) {
        self.init(snapshot: snapshot, notes: Array(repeating: note, count: snapshot.users.count))
    }
}

/// An event with everything that is committed with it.
package struct EventCommit: Sendable, Equatable {
    /// The event.
    package var event: EventRecord
    /// Rows of the event, inserted as given.
    package var deliveries: [PushRecord]
    /// Recipients; nil for none in particular. Recipients with the choice `pushed` count as pushed from the start. The row is open if a
    /// receipt is awaited.
    package var recipients: RecipientOpening?
    /// Key of a direct send that reaches each user only once ever; nil for others.
    package var once: OnceKey?

    /// An event without recipients and rows unless given.
    package init(
        _ event: EventRecord, _ deliveries: [PushRecord] = [], recipients: RecipientOpening? = nil, once: OnceKey? = nil
    ) {
        self.once = once
        self.event = event
        self.deliveries = deliveries
        self.recipients = recipients
    }
}

/// Results of some recipients of one event. Setting a result again changes nothing, so a settlement may be repeated.
package struct RecipientSettlement: Sendable, Equatable {
    /// A receipt of one recipient.
    package struct Confirmation: Sendable, Equatable {
        /// Place in the snapshot.
        package var recipient: Int
        /// Time of the receipt, in milliseconds since 1970. Kept in steps of 100 ms, up to 109 minutes after the commit.
        package var at: Int64

        /// A receipt at a time in milliseconds since 1970.
        package init(recipient: Int, at: Int64) {
            self.recipient = recipient
            self.at = at
        }
    }

    /// Id of the event.
    package var event: String
    /// Receipts; the first one's time stays.
    package var confirmed: [Confirmation]
    /// Places of recipients who got delivery rows.
    package var pushed: [Int]
    /// Whether no receipt is awaited any more. This closes the event's row, which never opens again.
    package var isClosed: Bool

    /// A settlement of nothing unless given.
    package init(event: String, confirmed: [Confirmation] = [], pushed: [Int] = [], isClosed: Bool = false) {
        self.event = event
        self.confirmed = confirmed
        self.pushed = pushed
        self.isClosed = isClosed
    }

    /// A settlement of recipients who confirmed at the same time, in milliseconds since 1970.
    package init(event: String, confirmed: [Int], at: Int64, isClosed: Bool = false) {
        self.init(event: event, confirmed: confirmed.map { Confirmation(recipient: $0, at: at) }, isClosed: isClosed)
    }
}

/// A set of places among an event's recipients, one bit each.
package struct PlaceSet: Sendable, Equatable {
    /// Place 0 is the lowest bit of the first byte.
    package private(set) var bytes: [UInt8]

    /// The empty set of `count` places.
    package init(count: Int) {
        bytes = Array(repeating: 0, count: Self.byteCount(of: count))
    }

    /// Reads a stored set; no bytes at all stand for the empty set.
    /// - Returns: nil if the bytes do not fit `count` places.
    package init?(bytes: [UInt8], count: Int) {
        let byteCount = Self.byteCount(of: count)
        guard bytes.isEmpty || bytes.count == byteCount else { return nil }
        self.bytes = bytes.isEmpty ? Array(repeating: 0, count: byteCount) : bytes
    }

    /// Bytes of a set of `count` places.
    package static func byteCount(of count: Int) -> Int { (count + 7) / 8 }

    /// Whether the place is a member; one beyond the count never is.
    package func contains(_ place: Int) -> Bool {
        place >= 0 && place >> 3 < bytes.count && bytes[place >> 3] & 1 << (place & 7) != 0
    }

    /// Adds a place.
    /// - Parameter place: below the count.
    package mutating func insert(_ place: Int) {
        bytes[place >> 3] |= 1 << (place & 7)
    }

    /// Whether no place is a member.
    package var isEmpty: Bool { bytes.allSatisfy { $0 == 0 } }
}

/// The recipients of an event whose receipts were still awaited when a process ended.
package struct OpenRecipients: Sendable, Equatable {
    /// Position for the next page; grows from the oldest event to the newest.
    package var position: Int64
    /// The event.
    package var event: EventRecord
    /// Recipients in the order of the bits.
    package var users: [String]
    /// One note per recipient.
    package var notes: [RecipientNote]
    /// Places of recipients who confirmed.
    package var confirmed: PlaceSet
    /// Places of recipients who were pushed to.
    package var pushed: PlaceSet

    /// Recipients as stored.
    package init(
        position: Int64, event: EventRecord, users: [String], notes: [RecipientNote], confirmed: PlaceSet, pushed: PlaceSet
    ) {
        self.position = position
        self.event = event
        self.users = users
        self.notes = notes
        self.confirmed = confirmed
        self.pushed = pushed
    }

    /// Places of recipients who are owed a push: a receipt was awaited, and neither receipt nor push came.
    package var unsettled: [Int] {
        users.indices.filter { notes[$0].choice == .awaited && !confirmed.contains($0) && !pushed.contains($0) }
    }
}

/// An event that a recipient has not confirmed.
package struct MissedEvent: Sendable, Equatable {
    /// The event.
    package var event: EventRecord
    /// Place of the user among the event's recipients.
    package var recipient: Int
    /// State and decision at the commit.
    package var note: RecipientNote
    /// Whether a delivery row exists: a receipt after the replay cancels it with `cancelDeliveries`.
    package var isPushed: Bool

    /// An event as stored.
    package init(event: EventRecord, recipient: Int, note: RecipientNote, isPushed: Bool) {
        self.event = event
        self.recipient = recipient
        self.note = note
        self.isPushed = isPushed
    }
}

/// Some of a user's events, in the order of their commits.
package struct UserEvents: Sendable, Equatable {
    /// An event with its position.
    package struct Entry: Sendable, Equatable {
        /// Grows from event to event over all apps and channels; gaps are normal, and no number is used twice.
        package var position: Int64
        /// The event.
        package var event: EventRecord

        /// An event as stored.
        package init(position: Int64, event: EventRecord) {
            self.position = position
            self.event = event
        }
    }

    /// The page's events.
    package var entries: [Entry]
    /// Position for the next page: everything up to it has been searched, even if nothing was found.
    package var position: Int64
    /// Whether there may be more after `position`.
    package var isMore: Bool

    /// A page as stored.
    package init(entries: [Entry], position: Int64, isMore: Bool) {
        self.entries = entries
        self.position = position
        self.isMore = isMore
    }
}

/// Records which recipients of events have been told: durable with the event, then updated in batches. Callable from any thread.
///
/// Events and places that are missing, because they were pruned, are ignored. Unreadable rows never stop a caller, and the store reports
/// them. Unreadable places count as empty, unreadable notes as `awaited`: a device folds a surplus push, but nobody replaces a missing one.
package protocol RecipientStore: Sendable {
    /// Writes results of recipients, in one transaction.
    func settle(_ settlements: [RecipientSettlement]) async throws
    /// Inserts delivery rows and writes settlements in one transaction, so a recipient counts as pushed exactly if the row exists.
    /// - Returns: the rows that are new, in order. Only these are to be sent.
    func escalate(_ deliveries: [PushRecord], _ settlements: [RecipientSettlement]) async throws -> [PushRecord]
    /// At most `limit` events with awaited receipts after a position, oldest first, for start-up. An event whose recipients cannot be read
    /// is reported and closed.
    /// - Parameters:
    ///   - position: of the last event of the previous page; 0 for the first page.
    ///   - limit: an event takes two bytes of memory or more per recipient.
    func openFanouts(after position: Int64, limit: Int) async throws -> [OpenRecipients]
    /// Ends notifications that wait to be sent (`waiting`, `due`, `retry`) as `cancelled` with the outcome `receipt`. A push that
    /// this process has leased is being sent, and stays; if its attempt ends in `retry`, `update` or the next process ends it. A push that
    /// an earlier process had leased waits to be sent again, and ends. Clearing pushes stay.
    /// - Returns: the ended rows, without their messages.
    func cancelDeliveries(event: String, _ cancellations: [PushCancellation]) async throws -> [PushRecord]
    /// Per user, the channel's unexpired events that have the user among their recipients and lack a confirmation, in order. Left out are
    /// events that the user caused. Searches at most the 1,000 events that expire last, each once for all users.
    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - limit: most events per user.
    func missed(app: String, channel: String, users: [String], now: Int64, limit: Int) async throws -> [[MissedEvent]]
    /// The channel's events after a sequence, in order, at most `limit`.
    func history(app: String, channel: String, after sequence: Int64, limit: Int) async throws -> [EventRecord]
    /// The user's events after a position, over all channels of the app. One call searches a bounded number of events of large sessions. So
    /// a page may be short or empty and still say that there is more.
    func events(app: String, user: String, after position: Int64, limit: Int) async throws -> UserEvents
}

/// A receipt's effect on waiting pushes of one event.
package struct PushCancellation: Sendable, Hashable {
    /// User id of the recipient.
    package var user: String
    /// Device that confirmed; nil for all of the user's devices.
    package var device: String?
    /// Whether the notification itself arrived, and not only the event. Then pushes of `both` and `push_only` end as well.
    package var isOfNotification: Bool

    /// A receipt of the event for all devices unless given.
    package init(user: String, device: String? = nil, isOfNotification: Bool = false) {
        self.user = user
        self.device = device
        self.isOfNotification = isOfNotification
    }
}

extension RecipientStore {
    /// Events that one user has missed.
    package func missed(app: String, channel: String, user: String, now: Int64, limit: Int) async throws -> [MissedEvent] {
        try await missed(app: app, channel: channel, users: [user], now: now, limit: limit).first ?? []
    }

    /// The oldest events with awaited receipts.
    package func openFanouts(limit: Int) async throws -> [OpenRecipients] {
        try await openFanouts(after: 0, limit: limit)
    }
}
