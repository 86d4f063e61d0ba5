/// The protocol version that a client asks for in its URL. All accepted ones are treated alike: what differs between them
/// is only what a client ignores.
package struct ProtocolVersion: Hashable, Sendable {
    package let number: Int

    /// The versions in use. Up to 3 the handshake's event had another name.
    package static let accepted = 4...7
    /// Newest, for clients that name none.
    package static let assumed = ProtocolVersion(number: 7)

    private init(number: Int) {
        self.number = number
    }

    /// What becomes of a connection; refused ones are upgraded first, so that they can be told.
    package enum Outcome: Hashable, Sendable {
        case accepted(ProtocolVersion)
        case refused(CloseCode)
    }

    /// - Parameter queryValue: the decoded value of `protocol`; nil when the URL has none.
    package static func check(_ queryValue: String?) -> Outcome {
        guard let queryValue else { return .accepted(assumed) }
        guard !queryValue.isEmpty, queryValue.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
            return .refused(.invalidVersion)
        }
        // Digits that do not fit an Int are a version all the same, only none of ours.
        guard let number = Int(queryValue), accepted.contains(number) else { return .refused(.unsupportedVersion) }
        return .accepted(ProtocolVersion(number: number))
    }
}
