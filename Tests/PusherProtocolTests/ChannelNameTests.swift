import PusherProtocol
import Testing

@Suite("ChannelName")
struct ChannelNameTests {
    @Test("channels of users whose ids only look alike are two channels")
    func lookAlikes() throws {
        let composed = try #require(ChannelName(serverToUser: "\u{E9}"))
        let decomposed = try #require(ChannelName(serverToUser: "e\u{301}"))
        #expect(composed.text == decomposed.text && composed != decomposed)
        #expect(Set([composed, decomposed, composed]).count == 2)
    }

    @Test(
        "the longest prefix with its hyphen decides the kind",
        arguments: [
            ("my-channel", .public), ("private-a", .private), ("private-", .private), ("private", .public), ("privateers", .public),
            ("Private-a", .public), ("private_a", .public), ("private-encrypted-a", .encrypted), ("private-encrypted", .private),
            ("private-encrypted-cache-a", .encryptedCache), ("private-cache-a", .privateCache), ("private-cachet", .private),
            ("presence-a", .presence), ("presence-cache-a", .presenceCache), ("presence-encrypted-a", .presence), ("presences", .public),
            ("cache-a", .cache), ("cached", .public), ("a-private-b", .public), ("A-Za-z0-9_-=@,.;", .public),
        ] as [(String, ChannelKind)])
    func kinds(name: String, kind: ChannelKind) {
        #expect(ChannelName(name)?.kind == kind)
        #expect(ChannelName(allowingServerToUser: name)?.kind == kind)
        #expect(ChannelName(name)?.text == name)
    }

    @Test("each kind has the properties of the protocol's table")
    func properties() {
        let kinds = { (has: (ChannelKind) -> Bool) in Set(ChannelKind.allCases.filter(has)) }
        let authorized: Set<ChannelKind> = [.private, .privateCache, .encrypted, .encryptedCache, .presence, .presenceCache]
        #expect(kinds { $0.requiresAuthorization } == authorized)
        #expect(kinds { $0.allowsClientEvents } == authorized)
        #expect(kinds { $0.isPresence } == [.presence, .presenceCache])
        #expect(kinds { $0.isCache } == [.cache, .privateCache, .encryptedCache, .presenceCache])
        #expect(kinds { $0.isEncrypted } == [.encrypted, .encryptedCache])
    }

    @Test(
        "names beyond the character set are refused",
        arguments: [
            "", "a b", "a/b", "a:b", "a#b", "#a", "a\"b", "a\\b", "é", "a\u{0}", "a\n", "a+b", "a*", "a%20b", "private-{x}", "a\u{301}",
        ])
    func refused(name: String) {
        #expect(ChannelName(name) == nil)
        #expect(ChannelName(allowingServerToUser: name) == nil)
    }

    @Test("200 characters are accepted, 201 are not")
    func length() {
        #expect(ChannelName(String(repeating: "a", count: 200)) != nil)
        #expect(ChannelName(String(repeating: "a", count: 201)) == nil)
        #expect(ChannelName(serverToUser: String(repeating: "é", count: 184)) != nil)
        #expect(ChannelName(serverToUser: String(repeating: "é", count: 185)) == nil)
    }

    @Test("server-to-user channels exist only where they are asked for")
    func serverToUser() {
        #expect(ChannelName("#server-to-user-1") == nil)
        let name = ChannelName(allowingServerToUser: "#server-to-user-ann@example.com")
        #expect(name?.kind == .serverToUser)
        #expect(name?.userID == "ann@example.com")
        #expect(name == ChannelName(serverToUser: "ann@example.com"))
        #expect(ChannelName("private-a")?.userID == nil)
        for id in ["", "a\"b", "a\\b", "a\nb", "\u{7F}"] { #expect(ChannelName(serverToUser: id) == nil) }
        #expect(ChannelName(allowingServerToUser: "#server-to-user-") == nil)
        // Such an id is one character with the hyphen before it, which once hid the prefix.
        for id in ["\u{301}e", "\u{1F3FB}x"] { #expect(ChannelName(allowingServerToUser: "#server-to-user-\(id)")?.userID == id) }
    }
}

@Suite("SocketID")
struct SocketIDTests {
    @Test("well-formed ids are read and written alike", arguments: ["1234.1234", "0.0", "9007199254740991.9007199254740991"])
    func roundTrip(text: String) {
        #expect(SocketID(text)?.description == text)
        #expect(SocketID.isWellFormed(text))
    }

    @Test(
        "other texts are refused",
        arguments: ["", ".", "1.", ".1", "1", "1.2.3", "a.1", "1.a", " 1.2", "1.2 ", "+1.2", "-1.2", "1,2", "١.٢", "1.2\n", "1..2"])
    func refused(text: String) {
        #expect(SocketID(text) == nil)
        #expect(!SocketID.isWellFormed(text))
    }

    @Test("a number from 2^53 on is well formed, but no id of ours", arguments: ["9007199254740992.1", "1.99999999999999999999999999"])
    func large(text: String) {
        #expect(SocketID(text) == nil)
        #expect(SocketID.isWellFormed(text))
    }
}

@Suite("ProtocolVersion and CloseCode")
struct HandshakeRuleTests {
    @Test(
        "4 to 7 are accepted and none counts as 7",
        arguments: [(nil, 7), ("4", 4), ("5", 5), ("6", 6), ("7", 7), ("07", 7)] as [(String?, Int)])
    func accepted(value: String?, number: Int) {
        guard case .accepted(let version) = ProtocolVersion.check(value) else {
            Issue.record("refused")
            return
        }
        #expect(version.number == number)
    }

    @Test(
        "others are refused with the code that says why",
        arguments: [
            ("3", 4007), ("0", 4007), ("8", 4007), ("99", 4007), ("99999999999999999999999", 4007), ("abc", 4006), ("", 4006), ("-5", 4006),
            ("7.0", 4006), ("+7", 4006), (" 7", 4006), ("٧", 4006),
        ] as [(String, UInt16)])
    func refused(value: String, code: UInt16) {
        guard case .refused(let close) = ProtocolVersion.check(value) else {
            Issue.record("accepted")
            return
        }
        #expect(close.code == code)
    }

    @Test("a reason always fits a close frame")
    func reasons() {
        #expect(CloseCode(code: 4100, reason: String(repeating: "é", count: 100)).reason.utf8.count == 122)
        let all: [CloseCode] = [
            .tlsOnly, .applicationDoesNotExist, .applicationDisabled, .overConnectionQuota, .pathNotFound, .invalidVersion,
            .unsupportedVersion, .unauthorized, .terminatedByApplication, .overCapacity, .slowConsumer, .restarting, .pongNotReceived,
            .inactive, .tooManyFrames,
        ]
        for code in all {
            #expect(code == CloseCode(code: code.code, reason: code.reason))
            #expect((4000..<4300).contains(code.code), "pusher-js never returns from a close with 43xx")
        }
    }
}
