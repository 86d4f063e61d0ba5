/// The recipients that an event is committed with: one row, however many they are.
package struct RecipientOpening: Sendable, Equatable {
    package var snapshot: RecipientSnapshot
    /// One of each recipient, in their order.
    package var notes: [RecipientNote]

    /// - Parameter notes: as many as the snapshot has users.
    package init(snapshot: RecipientSnapshot, notes: [RecipientNote]) {
        precondition(notes.count == snapshot.users.count, "\(notes.count) notes for \(snapshot.users.count) recipients")
        self.snapshot = snapshot
        self.notes = notes
    }

    /// Every recipient with the same note.
    package init(snapshot: RecipientSnapshot, note: RecipientNote) {
        self.init(snapshot: snapshot, notes: Array(repeating: note, count: snapshot.users.count))
    }
}

/// An event with all that is committed with it.
package struct EventCommit: Sendable, Equatable {
    package var event: EventRecord
    package var deliveries: [PushRecord]
    /// Nil: nobody in particular. Recipients with the choice `pushed` count as pushed from the start; the fan-out is open when a
    /// receipt of somebody is awaited.
    package var recipients: RecipientOpening?
    /// Of a direct send that reaches each user once for ever.
    package var once: OnceKey?

    package init(
        _ event: EventRecord, _ deliveries: [PushRecord] = [], recipients: RecipientOpening? = nil, once: OnceKey? = nil
    ) {
        self.once = once
        self.event = event
        self.deliveries = deliveries
        self.recipients = recipients
    }
}

/// What became of some recipients of one event. Setting what is set already changes nothing, so a settlement may be repeated.
package struct RecipientSettlement: Sendable, Equatable {
    package struct Confirmation: Sendable, Equatable {
        /// Place in the snapshot.
        package var recipient: Int
        /// When the receipt came; milliseconds since 1970. Kept in steps of 100 ms up to 109 minutes after the commit.
        package var at: Int64

        package init(recipient: Int, at: Int64) {
            self.recipient = recipient
            self.at = at
        }
    }

    package var event: String
    /// Of two confirmations of one recipient the first one's time stays.
    package var confirmed: [Confirmation]
    /// Places of recipients who got delivery rows.
    package var pushed: [Int]
    /// Nobody is waited for any more. An open fan-out is closed by this; nothing opens one again.
    package var isClosed: Bool

    package init(event: String, confirmed: [Confirmation] = [], pushed: [Int] = [], isClosed: Bool = false) {
        self.event = event
        self.confirmed = confirmed
        self.pushed = pushed
        self.isClosed = isClosed
    }

    /// Recipients confirmed at the same time.
    package init(event: String, confirmed: [Int], at: Int64, isClosed: Bool = false) {
        self.init(event: event, confirmed: confirmed.map { Confirmation(recipient: $0, at: at) }, isClosed: isClosed)
    }
}

/// A set of places among an event's recipients, a bit each.
package struct PlaceSet: Sendable, Equatable {
    /// Place 0 is the lowest bit of the first byte.
    package private(set) var bytes: [UInt8]

    /// None of `count` places.
    package init(count: Int) {
        bytes = Array(repeating: 0, count: Self.byteCount(of: count))
    }

    /// A stored set; no bytes at all stand for the empty one.
    /// - Returns: nil when the bytes are not those of `count` places.
    package init?(bytes: [UInt8], count: Int) {
        let byteCount = Self.byteCount(of: count)
        guard bytes.isEmpty || bytes.count == byteCount else { return nil }
        self.bytes = bytes.isEmpty ? Array(repeating: 0, count: byteCount) : bytes
    }

    package static func byteCount(of count: Int) -> Int { (count + 7) / 8 }

    /// A place beyond the count is never a member.
    package func contains(_ place: Int) -> Bool {
        place >= 0 && place >> 3 < bytes.count && bytes[place >> 3] & 1 << (place & 7) != 0
    }

    /// - Parameter place: below the count.
    package mutating func insert(_ place: Int) {
        bytes[place >> 3] |= 1 << (place & 7)
    }

    package var isEmpty: Bool { bytes.allSatisfy { $0 == 0 } }
}

/// A fan-out that a process left open.
package struct OpenRecipients: Sendable, Equatable {
    /// Where to go on from with the next page; grows from the oldest event to the newest.
    package var position: Int64
    package var event: EventRecord
    /// In the order of the bits.
    package var users: [String]
    package var notes: [RecipientNote]
    package var confirmed: PlaceSet
    package var pushed: PlaceSet

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

    /// Places of those whose receipt was awaited and who got neither: each is owed a push.
    package var unsettled: [Int] {
        users.indices.filter { notes[$0].choice == .awaited && !confirmed.contains($0) && !pushed.contains($0) }
    }
}

/// An event that a recipient has not confirmed.
package struct MissedEvent: Sendable, Equatable {
    package var event: EventRecord
    /// The user's place among the event's recipients.
    package var recipient: Int
    package var note: RecipientNote
    /// A delivery row was made already: a receipt after the replay cancels it with `cancelDeliveries`.
    package var isPushed: Bool

    package init(event: EventRecord, recipient: Int, note: RecipientNote, isPushed: Bool) {
        self.event = event
        self.recipient = recipient
        self.note = note
        self.isPushed = isPushed
    }
}

/// Some of a user's events, in the order in which they were committed.
package struct UserEvents: Sendable, Equatable {
    package struct Entry: Sendable, Equatable {
        /// Grows from event to event over all apps and channels; gaps are normal, no number comes twice.
        package var position: Int64
        package var event: EventRecord

        package init(position: Int64, event: EventRecord) {
            self.position = position
            self.event = event
        }
    }

    package var entries: [Entry]
    /// What to ask for next: everything up to this position has been looked at, also where nothing was found.
    package var position: Int64
    /// Whether there may be something after `position`.
    package var isMore: Bool

    package init(entries: [Entry], position: Int64, isMore: Bool) {
        self.entries = entries
        self.position = position
        self.isMore = isMore
    }
}

/// Who of an event's recipients has been told: durable with the event, written in batches after it. Callable from any thread.
///
/// An event or a place that is not there (pruned meanwhile) is passed over. What is stored and cannot be read never stops a
/// caller: the store reports it, an unreadable set of places counts as empty, and unreadable notes as `awaited`, because a
/// surplus push is folded by the device and a missing one by nobody.
package protocol RecipientStore: Sendable {
    /// Writes what became of recipients, in one transaction.
    func settle(_ settlements: [RecipientSettlement]) async throws
    /// Inserts delivery rows and writes settlements, in one transaction: a recipient is pushed exactly when its row is there.
    /// - Returns: the rows that were not there before, in order. Only these are to be sent.
    func escalate(_ deliveries: [PushRecord], _ settlements: [RecipientSettlement]) async throws -> [PushRecord]
    /// The open fan-outs behind a position, oldest first, at most `limit`. For start-up. One whose recipients cannot be read is
    /// reported and closed.
    /// - Parameters:
    ///   - position: of the last one of the page before; 0 for the first page.
    ///   - limit: each takes memory of two bytes and more per recipient.
    func openFanouts(after position: Int64, limit: Int) async throws -> [OpenRecipients]
    /// Ends notifications that wait to be sent (`waiting`, `due`, `retry`) as `cancelled` with the outcome `receipt`. One that is leased
    /// is being sent and stays, until its outcome is a `retry`: then `update` ends it so, too, and the next process after a crash does.
    /// What takes a notification back stays.
    /// - Returns: those that were ended, without their messages.
    func cancelDeliveries(event: String, _ cancellations: [PushCancellation]) async throws -> [PushRecord]
    /// Of each user the channel's events that have not expired, have the user among their recipients and are not confirmed by it, in order.
    /// Who caused an event has not missed it. Looks at the 1,000 events at most that expire last, at each once for all users.
    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - limit: events of each user.
    func missed(app: String, channel: String, users: [String], now: Int64, limit: Int) async throws -> [[MissedEvent]]
    /// The channel's events after a sequence, in order.
    func history(app: String, channel: String, after sequence: Int64, limit: Int) async throws -> [EventRecord]
    /// The events that the user was a recipient of, over all channels of the app, after a position. One call looks at a bounded
    /// number of events of large sessions, so a page may be short or empty and say that there is more.
    func events(app: String, user: String, after position: Int64, limit: Int) async throws -> UserEvents
}

/// A receipt's word on pushes of one event that wait to be sent.
package struct PushCancellation: Sendable, Hashable {
    package var user: String
    /// Nil: all of the user's devices.
    package var device: String?
    /// Pushes that go out in any case, for their policy is `both` or `push_only`, are ended as well: the notification itself arrived,
    /// not only the event.
    package var isOfNotification: Bool

    package init(user: String, device: String? = nil, isOfNotification: Bool = false) {
        self.user = user
        self.device = device
        self.isOfNotification = isOfNotification
    }
}

extension RecipientStore {
    /// What one user has missed.
    package func missed(app: String, channel: String, user: String, now: Int64, limit: Int) async throws -> [MissedEvent] {
        try await missed(app: app, channel: channel, users: [user], now: now, limit: limit).first ?? []
    }

    /// The oldest open fan-outs.
    package func openFanouts(limit: Int) async throws -> [OpenRecipients] {
        try await openFanouts(after: 0, limit: limit)
    }
}
