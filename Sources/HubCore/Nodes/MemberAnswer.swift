/// A member of a channel over all nodes.
package struct Member: Sendable, Equatable {
    package let user: String
    /// Compact JSON text; nil: none.
    package let info: [UInt8]?

    package init(user: String, info: [UInt8]?) {
        self.user = user
        self.info = info
    }
}

/// Whether a user is a member.
package struct Online: Sendable, Equatable {
    package let user: String
    package let isOnline: Bool

    package init(user: String, isOnline: Bool) {
        self.user = user
        self.isOnline = isOnline
    }
}

/// Answer to a node that shares its members with others. A ticket tells which question it answers.
package enum MemberAnswer: Sendable, Equatable {
    /// The user is a member, as is known where everything up to the id has been read.
    case admitted(MemberPlace, user: String, ticket: UInt64, at: StreamID)
    /// The channel has its maximum of members.
    case full(MemberPlace, user: String, ticket: UInt64)
    /// The members as of the id.
    case list(MemberPlace, ticket: UInt64, at: StreamID, [Member])
    /// Which of the users are members, as of the id.
    case online(MemberPlace, ticket: UInt64, at: StreamID, [Online])

    /// Concerned channel.
    package var place: MemberPlace {
        switch self {
        case .admitted(let place, _, _, _), .full(let place, _, _), .list(let place, _, _, _), .online(let place, _, _, _): place
        }
    }
}
