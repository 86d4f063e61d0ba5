/// Tells the tokens of one notification's pushes apart, after they were sent: a hash that fits in a line of the attempts, and no secret.
package struct TokenMark: Sendable, Hashable {
    package let value: UInt32

    /// FNV-1a.
    package init(_ token: String, of provider: PushProvider) {
        var hash: UInt32 = provider == .apns ? 0x811C_9DC5 : 0x811C_9DC4
        for byte in token.utf8 { hash = (hash ^ UInt32(byte)) &* 0x0100_0193 }
        value = hash
    }

    package init(value: UInt32) { self.value = value }
}

/// A push that may have to follow its person to another device: what is known when it is to be sent, or when its gateway has called its
/// token dead.
package struct Redirection: Sendable {
    /// A device that the person can be reached on; of one token there may be several.
    package struct Reachable: Sendable, Equatable {
        package var device: String
        package var token: TokenMark
        /// It came after the event: when that was decided, it had no part in it.
        package var isNew: Bool

        package init(device: String, token: TokenMark, isNew: Bool) {
            self.device = device
            self.token = token
            self.isNew = isNew
        }
    }

    /// As it ends, where it ends without another device in its place. In an open state where it has a token of its own and goes on.
    package var delivery: PushRecord
    /// The token that it would be sent to; nil: there is none any more.
    package var token: TokenMark?
    /// The newest first.
    package var reachable: [Reachable]

    package init(delivery: PushRecord, token: TokenMark?, reachable: [Reachable]) {
        self.delivery = delivery
        self.token = token
        self.reachable = reachable
    }
}

/// The outcome for a push that was looked at again.
package enum RedirectionOutcome: Sendable, Equatable {
    /// It goes on, and these beside it: pushes to devices that have come, committed, in the state `due`.
    case goesOn([PushRecord])
    /// It has ended, and these have taken its place.
    case ended(PushRecord, [PushRecord])
    /// Another push of the notification is being sent to the person, and it is not certain to which token: what is right is known after
    /// its answer. Nothing was written.
    case waits
    /// It had ended already.
    case gone
}

/// Another row of the same notification and person.
package struct RedirectionRow: Sendable, Equatable {
    package var device: String
    package var isOpen: Bool
    /// Being sent by this process.
    package var isLeased: Bool
    /// Tokens for which its gateway accepted a push.
    package var accepted: [TokenMark]

    package init(device: String, isOpen: Bool, isLeased: Bool, accepted: [TokenMark]) {
        self.device = device
        self.isOpen = isOpen
        self.isLeased = isLeased
        self.accepted = accepted
    }
}

extension Redirection {
    /// For the trail: of what gave way to another device, and of what has the token of another row.
    package static let replaced = "replaced"
    package static let sameToken = "same token"

    /// The change that is to be written down.
    package enum Ruling: Sendable, Equatable {
        case goesOn(successors: [String])
        case ends(PushState, outcome: String?, successors: [String])
        case waits
    }

    /// A pure function of the person's other rows of the notification: no token gets it twice, no device gets two rows, and who has come
    /// since the event is told in the place of what has gone.
    package func ruling(beside others: [RedirectionRow]) -> Ruling {
        let isOver = !PushState.open.contains(delivery.state) && delivery.attempt != nil
        // The end of an attempt is written down in any case.
        if !isOver, others.contains(where: { $0.isLeased && !isKnown($0) }) { return .waits }
        let tokens = Dictionary(reachable.map { ($0.device, $0.token) }, uniquingKeysWith: { first, _ in first })
        var told = Set(others.flatMap(\.accepted) + others.filter(\.isOpen).compactMap { tokens[$0.device] })
        if let token, told.contains(token) { return .ends(.cancelled, outcome: Self.sameToken, successors: []) }
        // A dead token is not tried under another device's name.
        for mark in [token, isOver ? delivery.attempt?.token : nil].compactMap({ $0 }) { told.insert(mark) }
        let known = Set(others.map(\.device) + [delivery.device])
        let room = max(0, Decision.devicesMax - others.count { $0.isOpen || !$0.accepted.isEmpty })
        let come = reachable.filter { $0.isNew && !known.contains($0.device) && told.insert($0.token).inserted }
        let successors = come.prefix(room).map(\.device)
        if token != nil { return .goesOn(successors: successors) }
        if isOver || successors.isEmpty { return .ends(delivery.state, outcome: delivery.outcome, successors: successors) }
        return .ends(.cancelled, outcome: Self.replaced, successors: successors)
    }

    /// Whether it is certain which token a row is being sent to: that of its device, which has had it since before the event.
    private func isKnown(_ row: RedirectionRow) -> Bool { reachable.contains { $0.device == row.device && !$0.isNew } }

    /// The row of a device that has come: its reason stays, because it says which receipts count.
    package func successor(on device: String, now: Int64) -> PushRecord {
        PushRecord(
            nid: delivery.nid, event: delivery.event, app: delivery.app, user: delivery.user, device: device, state: .due,
            reason: delivery.reason, dueAt: now, message: delivery.message)
    }
}

/// Pushes that follow their people. Callable from any thread.
package protocol RedirectionStore: Sendable {
    /// Ends pushes and inserts those in their place, all of it in one transaction: after a crash both are there or neither. In order, so
    /// that each sees what became of those before it.
    /// - Parameter now: milliseconds since 1970.
    /// - Returns: one of each, in order.
    func redirect(_ redirections: [Redirection], now: Int64) async throws -> [RedirectionOutcome]
}
