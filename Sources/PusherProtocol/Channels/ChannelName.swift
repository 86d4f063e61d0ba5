internal import HubCore

/// A checked channel name, and the kind given by its prefix.
///
/// The text never holds a quote, a backslash or a control character, so it stands in JSON as it is.
package struct ChannelName: Hashable, Sendable, CustomStringConvertible {
    /// The name as clients write it.
    package let text: String
    /// The kind that the prefix gives.
    package let kind: ChannelKind

    /// Most Unicode scalars of a name. Pusher's documentation says 164, but most SDKs allow 200.
    package static let charactersMax = 200
    /// The rule for names, as the sentence that follows a refused name.
    package static let rule =
        "a channel name has 1 to \(charactersMax) characters out of A-Z a-z 0-9 _ - = @ , . ;"

    private static let userPrefix = "#server-to-user-"

    /// A name open to everyone; nil when it breaks `rule`. Names that begin with `#` belong to the service.
    package init?(_ text: String) {
        guard !text.isEmpty, text.utf8.count <= Self.charactersMax, Self.isAllowed(text) else { return nil }
        self.text = text
        kind = ChannelKind(prefixOf: text)
    }

    /// As `init(_:)`, but `#server-to-user-{id}` is accepted too. For publishing, and for subscribing after the caller
    /// has checked that the connection is signed in as exactly that user.
    package init?(allowingServerToUser text: String) {
        // Nearly every name is accepted here, after one scan.
        if let name = ChannelName(text) {
            self = name
            return
        }
        // Compared as bytes: to `String.hasPrefix` a hyphen before a combining character is another character.
        if text.utf8.starts(with: Self.userPrefix.utf8) {
            self.init(serverToUser: String(Substring(text.utf8.dropFirst(Self.userPrefix.utf8.count))))
        } else {
            return nil
        }
    }

    /// The channel that reaches one signed-in user on every connection. Most SDKs allow any sign-in id, so any
    /// printable text without quotes and backslashes is accepted. Nil for an empty or too long id.
    package init?(serverToUser id: String) {
        let text = Self.userPrefix + id
        guard !id.isEmpty, text.unicodeScalars.count <= Self.charactersMax, id.utf8.allSatisfy(Self.isPrintable) else {
            return nil
        }
        self.text = text
        kind = .serverToUser
    }

    /// The id in `#server-to-user-{id}`; nil for every other channel.
    package var userID: String? {
        kind == .serverToUser ? String(Substring(text.utf8.dropFirst(Self.userPrefix.utf8.count))) : nil
    }

    package var description: String { text }

    /// User channels compare by bytes. Swift's `==` treats `é` of one scalar as equal to `é` of two; clients and
    /// signatures do not.
    package static func == (a: ChannelName, b: ChannelName) -> Bool {
        a.text == b.text && (a.kind != .serverToUser || a.text.utf8.elementsEqual(b.text.utf8))
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(text)
    }

    private static func isAllowed(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            for unsafe byte in unsafe bytes {
                let bits = byte < 64 ? lowAllowed : byte < 128 ? highAllowed : 0
                if bits >> UInt64(byte & 63) & 1 == 0 { return false }
            }
            return true
        }
    }

    /// A bit for each byte from 0 to 63: `,` `-` `.` `0` to `9` `;` `=`. A bit set, because every channel of every
    /// publish is checked.
    private static let lowAllowed: UInt64 = 0x2BFF_7000_0000_0000
    /// The same from 64 to 127: `@` `A` to `Z` `_` `a` to `z`.
    private static let highAllowed: UInt64 = 0x07FF_FFFE_87FF_FFFF

    private static func isPrintable(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != 0x7F && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }
}

/// The kinds of channels, by prefix.
package enum ChannelKind: Hashable, Sendable, CaseIterable {
    case `public`, cache
    case `private`, privateCache
    case encrypted, encryptedCache
    case presence, presenceCache
    case serverToUser

    /// The prefix counts with its hyphen and the longest wins: `privateers` is public, `private-cache-x` is cached.
    init(prefixOf name: String) {
        switch name.utf8.first {
        case UInt8(ascii: "p"), UInt8(ascii: "c"): self = Self.prefixes.first { $0.prefix.begins(name) }?.kind ?? .public
        default: self = .public
        }
    }

    private static let prefixes: [(prefix: StaticString, kind: ChannelKind)] = [
        ("private-encrypted-cache-", .encryptedCache), ("private-encrypted-", .encrypted), ("private-cache-", .privateCache),
        ("private-", .private), ("presence-cache-", .presenceCache), ("presence-", .presence), ("cache-", .cache),
    ]

    /// Whether a subscription needs a signature. `#server-to-user-` needs none, but a sign-in as that user.
    package var requiresAuthorization: Bool {
        switch self {
        case .public, .cache, .serverToUser: false
        case .private, .privateCache, .encrypted, .encryptedCache, .presence, .presenceCache: true
        }
    }

    /// Whether the subscribers are listed as members.
    package var isPresence: Bool { self == .presence || self == .presenceCache }

    /// Whether the last published event is kept for later subscribers.
    package var isCache: Bool {
        self == .cache || self == .privateCache || self == .encryptedCache || self == .presenceCache
    }

    /// Whether publishers encrypt the data, which the hub cannot read.
    package var isEncrypted: Bool { self == .encrypted || self == .encryptedCache }

    /// Whether subscribers may send client events. On encrypted channels only the libraries refuse them, not the protocol.
    package var allowsClientEvents: Bool { requiresAuthorization }
}
