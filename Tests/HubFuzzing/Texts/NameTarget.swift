import HubTesting
import PusherProtocol

/// Names of channels and events, socket ids, protocol versions and lists of attributes.
enum NameTarget {
    @Sendable static func make() -> FuzzTarget {
        let tokens = [
            "private-", "presence-", "encrypted-", "cache-", "#server-to-user-", "#", ".", ",", ";", "user_count", "é", "e\u{301}", "\"",
            "\\", "0", "9007199254740991",
        ]
        let source = InputSource("names", tokens: tokens) { random in
            switch random.below(5) {
            case 0, 1, 2: Array(random.channel().utf8)
            case 3: Array("\(random.next() >> UInt64(random.below(64))).\(random.next() >> UInt64(random.below(64)))".utf8)
            default:
                Array(
                    random.element(of: [
                        "7", "4", "3", "8", "", "007", "99999999999999999999", "user_count,subscription_count", "cache, user_count",
                        "pusher:x", "client-y", "٣",
                    ]).utf8)
            }
        }
        return FuzzTarget(input: source.draw, check: check)
    }

    private static func check(_ bytes: [UInt8]) -> String? {
        let text = String(decoding: bytes, as: UTF8.self)
        return channel(text) ?? socket(text) ?? others(text)
    }

    private static func channel(_ text: String) -> String? {
        let utf8 = Array(text.utf8)
        let letters = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-=@,.;".utf8)
        let isValid = (1...ChannelName.charactersMax).contains(utf8.count) && utf8.allSatisfy(letters.contains)
        guard let name = ChannelName(text) else { return isValid ? "a valid name is refused" : serverToUser(text) }
        guard isValid else { return "an invalid name is accepted" }
        guard name.text == text, ChannelName(allowingServerToUser: text) == name, name.userID == nil else { return "the name has changed" }
        return name.kind == kind(utf8) ? nil : "it is of another kind than \(name.kind)"
    }

    private static func kind(_ name: [UInt8]) -> ChannelKind {
        let begins = { (prefix: String) in name.starts(with: prefix.utf8) }
        if begins("presence-") { return begins("presence-cache-") ? .presenceCache : .presence }
        if begins("private-encrypted-") { return begins("private-encrypted-cache-") ? .encryptedCache : .encrypted }
        if begins("private-") { return begins("private-cache-") ? .privateCache : .private }
        return begins("cache-") ? .cache : .public
    }

    private static func serverToUser(_ text: String) -> String? {
        guard let name = ChannelName(allowingServerToUser: text) else { return nil }
        guard name.kind == .serverToUser, let id = name.userID, !id.isEmpty, ChannelName(serverToUser: id) == name else {
            return "a wrong channel of a user"
        }
        if let other = ChannelName(serverToUser: id + "\u{301}"), other == name { return "two channels are one" }
        return name.text.utf8.contains { $0 < 0x20 || $0 == 0x22 || $0 == 0x5C } ? "a name that cannot stand in JSON as it is" : nil
    }

    private static func socket(_ text: String) -> String? {
        guard let id = SocketID(text) else { return nil }
        guard SocketID.isWellFormed(text), id.first < SocketID.numberEnd, id.second < SocketID.numberEnd else {
            return "a socket id that is none"
        }
        return SocketID(id.description) == id ? nil : "written anew it is another socket id"
    }

    private static func others(_ text: String) -> String? {
        if case .accepted(let version) = ProtocolVersion.check(text), !ProtocolVersion.accepted.contains(version.number) {
            return "version \(version.number)"
        }
        do throws(ProtocolError) {
            _ = try ChannelAttributes(parsing: text)
        } catch {
            if error.message.utf8.count > 400 { return "a long refusal" }
        }
        return EventName.isReserved(text) && EventName.isClientEvent(text) ? "a name that is both" : nil
    }
}
