import HubCore
import HubCrypto
import HubJSON
import HubTesting
import PusherProtocol

/// Signatures of subscriptions and sign-ins, and their users. An input is text: channel, socket id and auth value on one line each, then
/// channel data.
enum SubscriptionTarget {
    @Sendable static func make() -> FuzzTarget {
        let tokens =
            SeededRandom.jsonTokens + ["\"user_id\":", "\"id\":", "\"user_info\":", "\"watchlist\":[", "key:", "1e400", "1.5", "\n"]
        let source = InputSource("subscriptions", tokens: tokens, wellFormed: subscription)
        let parser = JSONParser(capacityBytes: FuzzTarget.inputBytesMax)
        return FuzzTarget(input: source.draw) { check($0, parser) }
    }

    private static func subscription(_ random: inout SeededRandom) -> [UInt8] {
        let channel = random.channel()
        let id = random.chance(1, in: 3) ? random.json(depth: 1) : random.quoted(random.word())
        var members = [random.element(of: ["\"user_id\":", "\"id\":"]) + id]
        if random.chance(1, in: 2) { members.append("\"user_info\":" + random.json()) }
        if random.chance(1, in: 3) {
            let count = random.chance(1, in: 20) ? 95 + random.below(10) : random.below(5)
            members.append(
                "\"watchlist\":[" + (0..<count).map { random.chance(1, in: 30) ? random.json() : "\"w\($0 % 97)\"" }.joined(separator: ",")
                    + "]")
        }
        let data = random.chance(1, in: 8) ? "" : "{" + members.joined(separator: "," + random.space()) + "}"
        let line = data.replacing("\n", with: " ")
        let socket = random.element(of: ["1.2", "123456.7890123", "9007199254740991.0", "9007199254740992.0", "1", ""])
        let auth =
            SocketID(socket).map { SubscriptionAuth.sign(socketID: $0, channel: channel, channelData: line, key: "key", secret: "secret") }
            ?? "key:00"
        return Array("\(channel)\n\(socket)\n\(auth)\n\(line)".utf8)
    }

    private static func check(_ bytes: [UInt8], _ parser: JSONParser) -> String? {
        let parts = bytes.split(separator: 0x0A, maxSplits: 3, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
        guard parts.count == 4 else { return nil }
        let data = parts[3]
        if let channel = ChannelName(parts[0]), let socket = SocketID(parts[1]), let reason = signatures(channel, socket, parts[2], data) {
            return reason
        }
        return member(data, parser) ?? user(data, parser)
    }

    private static func signatures(_ channel: ChannelName, _ socket: SocketID, _ auth: String, _ data: String) -> String? {
        let isAccepted = { (auth: String, channel: ChannelName, data: String) in
            do {
                return try SubscriptionAuth.verify(auth: auth, socketID: socket, channel: channel, channelData: data) {
                    $0 == "key" ? HMACKey("secret") : nil
                } == "key"
            } catch {
                return false
            }
        }
        let signed = SubscriptionAuth.sign(socketID: socket, channel: channel.text, channelData: data, key: "key", secret: "secret")
        guard isAccepted(signed, channel, data) else { return "an honestly signed subscription is refused" }
        let withoutData = SubscriptionAuth.sign(socketID: socket, channel: channel.text, channelData: nil, key: "key", secret: "secret")
        // Hexadecimal digits may be upper case.
        let isOurs = auth.lowercased() == signed || !channel.kind.isPresence && auth.lowercased() == withoutData
        if isAccepted(auth, channel, data), !isOurs { return "a signature is accepted that nobody made" }
        // Without data, the signature is that of a private channel without channel data, which is valid.
        if !data.isEmpty || channel.kind.isPresence, isAccepted(signed, channel, data + " ") { return "accepted with other channel data" }
        let forged = SubscriptionAuth.sign(socketID: socket, channel: channel.text, channelData: data, key: "key", secret: "guess")
        if isAccepted(forged, channel, data) { return "accepted with another secret" }
        do {
            let signedIn = SubscriptionAuth.signUser(socketID: socket, userData: data, key: "key", secret: "secret")
            guard
                try SubscriptionAuth.verifyUser(
                    auth: signedIn, socketID: socket, userData: data, key: { $0 == "key" ? HMACKey("secret") : nil }) == "key"
            else { return "another key" }
        } catch {
            return "an honestly signed sign-in is refused: \(error)"
        }
        return nil
    }

    private static func member(_ data: String, _ parser: JSONParser) -> String? {
        let limits = UserLimits()
        do throws(ProtocolError) {
            let member = try PresenceMember.parse(channelData: data, limits: limits, with: parser)
            guard (1...limits.userIDCharactersMax).contains(member.userID.unicodeScalars.count) else {
                return "a user id of no allowed length"
            }
            let again = try PresenceMember.parse(
                channelData: written("user_id", member.userID, member.userInfo), limits: larger, with: parser)
            return again == member ? nil : "written anew it is another member"
        } catch {
            return error.message.isEmpty || error.message.utf8.count > 1000 ? "a bad refusal: \(error)" : nil
        }
    }

    private static func user(_ data: String, _ parser: JSONParser) -> String? {
        let limits = UserLimits()
        do throws(ProtocolError) {
            let user = try SignedInUser.parse(userData: data, limits: limits, with: parser)
            guard (1...limits.userIDCharactersMax).contains(user.id.unicodeScalars.count) else { return "an id of no allowed length" }
            guard user.watchlist.count <= limits.watchlistMax, Set(user.watchlist).count == user.watchlist.count else {
                return "a wrong watchlist"
            }
            if user.exceedsWatchlistLimit && user.watchlist.count != limits.watchlistMax { return "a watchlist cut too early" }
            let again = try SignedInUser.parse(userData: written("id", user.id, user.userInfo), limits: larger, with: parser)
            return again.id == user.id && again.userInfo == user.userInfo ? nil : "written anew it is another user"
        } catch {
            return error.message.isEmpty || error.message.utf8.count > 1000 ? "a bad refusal: \(error)" : nil
        }
    }

    /// Rewritten escapes can be longer than the original.
    private static var larger: UserLimits {
        var limits = UserLimits()
        limits.userObjectBytesMax *= 8
        return limits
    }

    private static func written(_ name: String, _ id: String, _ info: [UInt8]?) -> String {
        let own = info.map { ",\"user_info\":" + String(decoding: $0, as: UTF8.self) } ?? ""
        return "{\"\(name)\":" + JSONValue.string(id).text + own + "}"
    }
}
