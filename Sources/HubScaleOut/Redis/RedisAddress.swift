/// Where Redis is, and how to get in: `redis://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][/DATABASE][?prefix=…&ca=…&sentinel=…]`.
///
/// Several hosts are several Redis servers, among which apps are spread. With `sentinel` they are sentinels that know the one server.
package struct RedisAddress: Sendable, Equatable {
    /// A server's place in the network.
    package struct Host: Sendable, Equatable, Hashable, CustomStringConvertible {
        /// Name or address, without brackets.
        package var name: String
        package var port: UInt16

        package init(name: String, port: UInt16) {
            self.name = name
            self.port = port
        }

        package var description: String { "\(name.contains(":") ? "[\(name)]" : name):\(port)" }
    }

    /// Reason why a text is no address, as the end of an error message.
    package struct Mistake: Error, Equatable {
        package let sentence: String
    }

    package var hosts: [Host] = []
    package var user: String?
    package var password: String?
    package var database = 0
    package var usesTLS = false
    /// First part of every key. Two clusters in one Redis differ in it.
    package var prefix = "tandem"
    /// File with the certificates of authorities to trust instead of the system's.
    package var authorities: String?
    /// Name under which the sentinels know the server; nil: `hosts` are servers.
    package var sentinel: String?
    /// Password of the sentinels.
    package var sentinelPassword: String?

    /// Servers among which apps are spread.
    package var shardCount: Int { sentinel == nil ? hosts.count : 1 }

    /// A server as messages name it, without the login.
    package func name(of shard: Int) -> String {
        sentinel.map { "\($0) of the sentinels \(hosts.map(\.description).joined(separator: ", "))" } ?? hosts[shard].description
    }

    package static let standardPort: UInt16 = 6379
    package static let sentinelPort: UInt16 = 26379

    /// - Throws: `Mistake`, which names no password.
    package init(_ text: String) throws(Mistake) {
        var rest = Substring(text)
        if rest.hasPrefix("rediss://") { usesTLS = true } else if !rest.hasPrefix("redis://") { throw Self.shape }
        rest = rest.dropFirst(usesTLS ? 9 : 8)
        if let mark = rest.firstIndex(of: "?") {
            try readSettings(rest[rest.index(after: mark)...])
            rest = rest[..<mark]
        }
        if let at = rest.lastIndex(of: "@") {
            let login = rest[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let user = try Self.decoded(login[0], "the user")
            if !user.isEmpty { self.user = user }
            if login.count == 2 { password = try Self.decoded(login[1], "the password") }
            if self.user != nil, password == nil {
                throw Mistake(sentence: "a user needs a password: redis://USER:PASSWORD@HOST")
            }
            rest = rest[rest.index(after: at)...]
        }
        if let slash = rest.firstIndex(of: "/") {
            let number = rest[rest.index(after: slash)...]
            if !number.isEmpty {
                guard let database = Int(number), (0...65_535).contains(database), number.first != "+" else {
                    throw Mistake(sentence: "the database behind / must be a number from 0 on")
                }
                self.database = database
            }
            rest = rest[..<slash]
        }
        for part in rest.split(separator: ",", omittingEmptySubsequences: false) {
            hosts.append(try Self.host(part, port: sentinel == nil ? Self.standardPort : Self.sentinelPort))
        }
        if Set(hosts).count < hosts.count { throw Mistake(sentence: "a host stands twice") }
        if hosts.count > 64 { throw Mistake(sentence: "more than 64 hosts") }
    }

    private static let shape = Mistake(sentence: "expected redis://HOST:PORT or rediss://HOST:PORT")

    private mutating func readSettings(_ text: Substring) throws(Mistake) {
        for part in text.split(separator: "&") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let value = pair.count == 2 ? try Self.decoded(pair[1], String(pair[0])) : ""
            guard !value.isEmpty else { throw Mistake(sentence: "'\(pair[0].prefix(40))' behind ? has no value") }
            switch pair[0] {
            case "prefix":
                guard value.utf8.count <= 64, value.utf8.allSatisfy({ $0 > 32 && $0 < 127 && $0 != UInt8(ascii: "{") }) else {
                    throw Mistake(sentence: "prefix may have 64 letters, digits and signs, without { and spaces")
                }
                prefix = value
            case "ca": authorities = value
            case "sentinel": sentinel = value
            case "sentinel_password": sentinelPassword = value
            default:
                throw Mistake(
                    sentence: "'\(pair[0].prefix(40))' behind ? is unknown; known are prefix, ca, sentinel and sentinel_password")
            }
        }
    }

    private static func host(_ text: Substring, port: UInt16) throws(Mistake) -> Host {
        var (name, rest) = (text, Substring())
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { throw shape }
            name = text[text.index(after: text.startIndex)..<end]
            rest = text[text.index(after: end)...]
        } else if let colon = text.firstIndex(of: ":") {
            (name, rest) = (text[..<colon], text[colon...])
        }
        guard !name.isEmpty, name.utf8.count <= 255, name.utf8.allSatisfy({ $0 > 32 && $0 < 127 }) else { throw shape }
        if rest.isEmpty { return Host(name: String(name), port: port) }
        guard rest.hasPrefix(":"), rest.dropFirst().utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }),
            let number = UInt16(rest.dropFirst()), number > 0
        else {
            throw Mistake(sentence: "a port must be a number from 1 to 65535")
        }
        return Host(name: String(name), port: number)
    }

    private static func decoded(_ text: Substring, _ what: String) throws(Mistake) -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(hex), let low = rest.popFirst().flatMap(hex) else {
                throw Mistake(sentence: "\(what) has a % without two hexadecimal digits; write % itself as %25")
            }
            bytes.append(high << 4 | low)
        }
        guard let decoded = String(validating: bytes, as: UTF8.self), !decoded.utf8.contains(0) else {
            throw Mistake(sentence: "\(what) is no UTF-8 text")
        }
        return decoded
    }

    private static func hex(_ byte: UInt8) -> UInt8? { Character(UnicodeScalar(byte)).hexDigitValue.map { UInt8($0) } }
}
