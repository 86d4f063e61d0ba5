/// Hash that distinguishes the tokens of one notification's pushes after sending. It fits in a line of the attempts, and is no secret.
package struct TokenMark: Sendable, Hashable {
    /// The hash.
    package let value: UInt32

    /// FNV-1a of the token, seeded by the provider.
    package init(_ token: String, of provider: PushProvider) {
        var hash: UInt32 = provider == .apns ? 0x811C_9DC5 : 0x811C_9DC4
        for byte in token.utf8 { hash = (hash ^ UInt32(byte)) &* 0x0100_0193 }
        value = hash
    }

    /// A stored mark.
    package init(value: UInt32) { self.value = value }
}

/// A push that may have to follow its recipient to another device, when it is to be sent or its token turned out dead.
package struct Redirection: Sendable {
    /// A device on which the recipient can be reached; several devices may have one token.
    package struct Reachable: Sendable, Equatable {
        /// Id of the device.
        package var device: String
        /// Mark of its token.
        package var token: TokenMark
        /// Whether the device came after the event, and so was not part of the decision.
        package var isNew: Bool

        /// A device with its token's mark.
        package init(device: String, token: TokenMark, isNew: Bool) {
            self.device = device
            self.token = token
            self.isNew = isNew
        }
    }

    /// The row: in its final state if no other device replaces it, or in an open state if it keeps a token and goes on.
    package var delivery: PushRecord
    /// Token to which the row would be sent; nil for none.
    package var token: TokenMark?
    /// Devices on which the recipient can be reached, the newest first.
    package var reachable: [Reachable]

    /// A push to check, with the recipient's devices as read just before.
    package init(delivery: PushRecord, token: TokenMark?, reachable: [Reachable]) {
        self.delivery = delivery
        self.token = token
        self.reachable = reachable
    }
}

/// Result for a push that was checked again.
package enum RedirectionOutcome: Sendable, Equatable {
    /// The push goes on. New devices get these pushes, committed in the state `due`.
    case goesOn([PushRecord])
    /// The push has ended, replaced by these.
    case ended(PushRecord, [PushRecord])
    /// The notification is being sent to the recipient with an unknown token, so the right outcome is known only after the answer. Nothing
    /// was written.
    case waits
    /// The push had already ended.
    case gone
}

/// Another row of the same notification and recipient.
package struct RedirectionRow: Sendable, Equatable {
    /// Id of the device.
    package var device: String
    /// Whether the row is in an open state.
    package var isOpen: Bool
    /// Whether this process is sending the row.
    package var isLeased: Bool
    /// Tokens for which the gateway accepted a push of the row.
    package var accepted: [TokenMark]

    /// A row as stored.
    package init(device: String, isOpen: Bool, isLeased: Bool, accepted: [TokenMark]) {
        self.device = device
        self.isOpen = isOpen
        self.isLeased = isLeased
        self.accepted = accepted
    }
}

extension Redirection {
    /// Outcome of a row that was replaced by another device.
    package static let replaced = "replaced"
    /// Outcome of a row whose token another row has.
    package static let sameToken = "same token"

    /// The change to write down.
    package enum Ruling: Sendable, Equatable {
        case goesOn(successors: [String])
        case ends(PushState, outcome: String?, successors: [String])
        case waits
    }

    /// Rules on the push, given the recipient's other rows of the notification. A pure function.
    ///
    /// No token gets the notification twice, and no device gets two rows. Devices that came since the event replace those that went.
    package func ruling(beside others: [RedirectionRow]) -> Ruling {
        let isOver = !PushState.open.contains(delivery.state) && delivery.attempt != nil
        // The end of an attempt is written in any case.
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

    /// Whether the token to which a row is being sent is certain: its device has had the same one since before the event.
    private func isKnown(_ row: RedirectionRow) -> Bool { reachable.contains { $0.device == row.device && !$0.isNew } }

    /// The row of a new device. The reason stays, because it says which receipts count.
    package func successor(on device: String, now: Int64) -> PushRecord {
        PushRecord(
            nid: delivery.nid, event: delivery.event, app: delivery.app, user: delivery.user, device: device, state: .due,
            reason: delivery.reason, dueAt: now, message: delivery.message)
    }
}

/// Pushes that follow their recipients. Callable from any thread.
package protocol RedirectionStore: Sendable {
    /// Ends pushes and inserts their replacements, all in one transaction, so a crash leaves both or neither. The order counts: each sees
    /// the results of those before it.
    /// - Parameter now: milliseconds since 1970.
    /// - Returns: one outcome per redirection, in order.
    func redirect(_ redirections: [Redirection], now: Int64) async throws -> [RedirectionOutcome]
}
