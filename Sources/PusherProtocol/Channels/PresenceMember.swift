internal import HubCore
package import HubJSON

/// A peer's data that breaks a rule, in a sentence for that peer. The sentence may quote the peer's data, so it belongs
/// in the answer and not in a log.
package struct ProtocolError: Error, Equatable, CustomStringConvertible {
    /// A sentence for the peer.
    package let message: String
    package var description: String { message }

    /// A sentence that may quote the peer's data.
    package init(message: String) {
        self.message = message
    }
}

/// Size limits of one user of a presence channel, or one signed-in user.
package struct UserLimits: Hashable, Sendable {
    /// Unicode scalars of a user id.
    package var userIDCharactersMax = 128
    /// Bytes of `channel_data` or `user_data` as sent.
    package var userObjectBytesMax = 1024
    /// Users that one connection watches.
    package var watchlistMax = 100

    /// The defaults.
    package init() {}
}

/// A user of a presence channel, as given in `channel_data`.
package struct PresenceMember: Hashable, Sendable {
    /// `10` and `"10"` are one member, so numbers become strings, integers without exponent or fraction.
    package let userID: String
    /// `user_info` as compact JSON text; nil when absent or null.
    package let userInfo: [UInt8]?

    /// A member whose info is compact JSON text.
    package init(userID: String, userInfo: [UInt8]?) {
        self.userID = userID
        self.userInfo = userInfo
    }

    /// - Parameters:
    ///   - channelData: the string that was signed.
    ///   - parser: of the calling thread; it holds another document afterwards.
    package static func parse(
        channelData: String, limits: UserLimits, with parser: JSONParser
    ) throws(ProtocolError)
        -> PresenceMember
    {
        let object = try UserObject(
            channelData, memberName: "channel_data", bytesMax: limits.userObjectBytesMax, with: parser)
        guard let id = object.source.element.find("user_id"), !id.isNull else {
            throw ProtocolError(message: "channel_data has no user_id: sign an object with a user_id that is a string or a number")
        }
        let userID = try text(of: id)
        try UserObject.checkID(userID, name: "user_id in channel_data", limits: limits)
        return PresenceMember(userID: userID, userInfo: object.compact("user_info"))
    }

    private static func text(of id: JSONElement) throws(ProtocolError) -> String {
        if let text = id.string { return text }
        if let integer = id.int { return String(integer) }
        if let integer = id.unsignedInt { return String(integer) }
        guard let number = id.double else {
            throw ProtocolError(message: "user_id in channel_data must be a string or a number")
        }
        // Below 2^63 the conversion cannot fail, and it is exact for whole numbers only.
        if number.magnitude < 0x1p63, Double(Int64(number)) == number { return String(Int64(number)) }
        let text = "\(number)"
        guard !text.contains("e") else {
            throw ProtocolError(message: "user_id in channel_data is a number without a plain decimal form: send it as a string")
        }
        return text
    }
}

/// A user that a connection has signed in as, as given in `user_data`.
package struct SignedInUser: Hashable, Sendable {
    /// 1 to `UserLimits.userIDCharactersMax` characters.
    package let id: String
    /// `user_info` as compact JSON text; nil when absent or null.
    package let userInfo: [UInt8]?
    /// Without repetitions, at most as many as allowed.
    package let watchlist: [String]
    /// Whether the watchlist was longer; the client then gets `ErrorCode.watchlistLimitExceeded`.
    package let exceedsWatchlistLimit: Bool

    /// - Parameters:
    ///   - userData: the string that was signed. The size limit leaves extra room for a full watchlist.
    ///   - parser: of the calling thread; it holds another document afterwards.
    package static func parse(
        userData: String, limits: UserLimits, with parser: JSONParser
    ) throws(ProtocolError)
        -> SignedInUser
    {
        let watchlistBytesMax = limits.watchlistMax * (limits.userIDCharactersMax * 4 + 3)
        let object = try UserObject(
            userData, memberName: "user_data", bytesMax: limits.userObjectBytesMax + watchlistBytesMax, with: parser)
        guard let id = object.source.element.find("id")?.string else {
            throw ProtocolError(message: "user_data has no id: sign an object with an id that is a non-empty string")
        }
        try UserObject.checkID(id, name: "id in user_data", limits: limits)
        var watchlist: [String] = []
        var seen: Set<ExactText> = []
        var isCut = false
        for element in try watchlistElements(object.source.element.find("watchlist")) {
            guard let watched = element.string else {
                throw ProtocolError(message: "watchlist in user_data must be an array of strings")
            }
            guard seen.insert(ExactText(watched)).inserted else { continue }
            if watchlist.count < limits.watchlistMax { watchlist.append(watched) } else { isCut = true }
        }
        return SignedInUser(
            id: id, userInfo: object.compact("user_info"), watchlist: watchlist, exceedsWatchlistLimit: isCut)
    }

    private static func watchlistElements(_ watchlist: JSONElement?) throws(ProtocolError) -> [JSONElement] {
        guard let watchlist, !watchlist.isNull else { return [] }
        guard watchlist.kind == .array else {
            throw ProtocolError(message: "watchlist in user_data must be an array of strings")
        }
        return Array(watchlist.elements)
    }
}

/// The common part of `channel_data` and `user_data`: a small object inside a string, with an id.
private struct UserObject {
    let source: JSONSource

    init(_ text: String, memberName: String, bytesMax: Int, with parser: JSONParser) throws(ProtocolError) {
        guard text.utf8.count <= bytesMax else {
            throw ProtocolError(
                message: "\(memberName) has \(text.utf8.count) bytes, more than the \(bytesMax) allowed: sign less about the user")
        }
        do {
            source = try parser.source(of: parser.parse(text))
        } catch {
            throw ProtocolError(message: "\(memberName) is not valid JSON: \(error.message)")
        }
        guard source.element.kind == .object else {
            throw ProtocolError(message: "\(memberName) must be a JSON object in a string")
        }
    }

    func compact(_ member: String) -> [UInt8]? {
        guard let value = source.member(member), !value.element.isNull else { return nil }
        var output: [UInt8] = []
        value.appendCompact(to: &output)
        return output
    }

    static func checkID(_ id: String, name: String, limits: UserLimits) throws(ProtocolError) {
        guard !id.isEmpty else { throw ProtocolError(message: "\(name) is empty") }
        guard id.unicodeScalars.count <= limits.userIDCharactersMax else {
            throw ProtocolError(message: "\(name) has more than \(limits.userIDCharactersMax) characters")
        }
    }
}
