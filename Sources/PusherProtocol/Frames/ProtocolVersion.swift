/// The protocol version that a client asks for in its URL. All accepted versions are treated alike; they differ only in
/// parts that a client ignores.
package struct ProtocolVersion: Hashable, Sendable {
    /// The version's number, within `accepted`.
    package let number: Int

    /// The versions in use. Up to 3 the handshake's event had another name.
    package static let accepted = 4...7
    /// Newest, for clients that name none.
    package static let assumed = ProtocolVersion(number: 7)

    private init(number: Int) {
        self.number = number
    }

    /// The verdict on a connection. A refused one is upgraded first, so that it can receive the close code.
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
        // Digits that do not fit an Int are still a version, but an unsupported one.
        guard let number = Int(queryValue), accepted.contains(number) else { return .refused(.unsupportedVersion) }
        return .accepted(ProtocolVersion(number: number))
    }
}
