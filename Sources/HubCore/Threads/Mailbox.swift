public import Synchronization

/// Messages for one reader: any thread appends them under a lock, and the reader takes all of them at once, in order.
///
/// Posts by one thread arrive in the order of posting. Presence snapshots and their deltas rely on this order, as do
/// role assignments and the publishes after them.
public final class Mailbox<Message: Sendable>: Sendable {
    /// Fate of an offered message.
    package enum Offer: Sendable {
        /// Taken into the empty box, so the reader must wake.
        case first
        /// Taken alongside others, for which the reader wakes.
        case later
        /// Refused, because the box holds as much as it may.
        case full
        /// Refused, because the box takes nothing any more.
        case closed

        package var isTaken: Bool { self == .first || self == .later }
    }

    @usableFromInline
    struct State {
        @usableFromInline var messages: [Message] = []
        @usableFromInline var isClosed = false

        init() {}
    }

    // Public and inlinable, because a loop posts and takes messages for each publish. The compiler offers other modules no bodies of
    // package functions, and the generic code costs a thousand instructions more.
    @usableFromInline let state = Mutex(State())
    @usableFromInline let occupation = Atomic(false)
    @usableFromInline let wake: @Sendable () -> Void

    /// - Parameter wake: called after a message came into the empty box, and after `close`, on the thread that caused it.
    package init(wake: @escaping @Sendable () -> Void) {
        self.wake = wake
    }

    /// Appends a message that must not be lost. Such messages are bounded by their causes, one or two per connection or
    /// reply. A closed box drops it.
    @inlinable
    public func post(_ message: Message) {
        let isFirst = state.withLock { state in
            if state.isClosed { return false }
            state.messages.append(message)
            occupation.store(true, ordering: .releasing)
            return state.messages.count == 1
        }
        if isFirst { wake() }
    }

    /// Appends a message unless `limit` are waiting already. The sender must report a refusal.
    package func offer(_ message: Message, limit: Int) -> Offer {
        offer { $0.count < limit ? message : nil }
    }

    /// Appends the message that `make` returns, if any. The sender must report a refusal.
    /// - Parameter make: called under the lock with the waiting messages; nil: they leave no room.
    package func offer(_ make: (_ waiting: [Message]) -> Message?) -> Offer {
        let offer = state.withLock { state -> Offer in
            if state.isClosed { return .closed }
            guard let message = make(state.messages) else { return .full }
            state.messages.append(message)
            occupation.store(true, ordering: .releasing)
            return state.messages.count == 1 ? .first : .later
        }
        if offer == .first { wake() }
        return offer
    }

    /// Whether messages wait: a check without the lock, cheap enough for every request. The mark is set before a post
    /// returns, so a thread that knows of the post sees it.
    @inlinable public var isOccupied: Bool { occupation.load(ordering: .acquiring) }

    /// Number of waiting messages.
    package var count: Int { state.withLock { $0.messages.count } }

    package var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Takes everything posted so far. The box takes over the storage of `messages`.
    /// - Returns: false if the box is closed and was empty, so nothing follows.
    @discardableResult @inlinable
    public func drain(into messages: inout [Message]) -> Bool {
        messages.removeAll(keepingCapacity: true)
        return state.withLock { state in
            occupation.store(false, ordering: .relaxed)
            swap(&state.messages, &messages)
            return !messages.isEmpty || !state.isClosed
        }
    }

    /// Refuses all further messages; waiting ones can still be taken. Idempotent.
    package func close() {
        let isNew = state.withLock { state in
            defer { state.isClosed = true }
            return !state.isClosed
        }
        if isNew { wake() }
    }
}
