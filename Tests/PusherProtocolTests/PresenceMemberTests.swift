import HubJSON
import HubTesting
import PusherProtocol
import Testing

@Suite("PresenceMember and SignedInUser")
struct PresenceMemberTests {
    private let parser = JSONParser(capacityBytes: 65_536)
    private let limits = UserLimits()

    private func member(_ data: String) throws(ProtocolError) -> PresenceMember {
        try PresenceMember.parse(channelData: data, limits: limits, with: parser)
    }

    private func user(_ data: String) throws(ProtocolError) -> SignedInUser {
        try SignedInUser.parse(userData: data, limits: limits, with: parser)
    }

    @Test(
        "a user id becomes the string it would be in a URL",
        arguments: [
            ("10", "10"), (#""10""#, "10"), ("-3", "-3"), ("0", "0"), ("10.0", "10"), ("1e3", "1000"), ("1.5", "1.5"),
            ("9223372036854775807", "9223372036854775807"), ("18446744073709551615", "18446744073709551615"), (#""Zo\u00eb""#, "Zoë"),
            (#"" ""#, " "),
        ])
    func userIDs(json: String, id: String) throws {
        #expect(try member("{\"user_id\":\(json)}").userID == id)
    }

    @Test("user_info is kept as compact text, null and absent are none")
    func userInfo() throws {
        #expect(try member(#"{"user_id":"1"}"#).userInfo == nil)
        #expect(try member(#"{"user_id":"1","user_info":null}"#).userInfo == nil)
        let info = try member(#"{"user_id":"1", "user_info": { "n" : 1.50, "s": "\u00eb x" } }"#).userInfo
        #expect(text(info ?? []) == #"{"n":1.50,"s":"\u00eb x"}"#)
    }

    @Test(
        "refused with a sentence that names the member",
        arguments: [
            ("", "channel_data is not valid JSON"), ("{", "channel_data is not valid JSON"), ("[]", "must be a JSON object"),
            ("\"x\"", "must be a JSON object"), ("{}", "has no user_id"), (#"{"user_id":null}"#, "has no user_id"),
            (#"{"user_id":""}"#, "is empty"),
            (#"{"user_id":true}"#, "must be a string or a number"), (#"{"user_id":[1]}"#, "must be a string or a number"),
            (#"{"user_id":{}}"#, "must be a string or a number"), (#"{"user_id":1e300}"#, "send it as a string"),
            (#"{"user_id":1e-9}"#, "send it as a string"), (#"{"user_id":"\#(String(repeating: "é", count: 129))"}"#, "128 characters"),
            (#"{"user_id":"1","user_info":"\#(String(repeating: "x", count: 1024))"}"#, "1024 allowed"),
        ])
    func refusals(data: String, part: String) {
        #expect { try member(data) } throws: { "\($0)".contains(part) && "\($0)".contains("channel_data") }
    }

    @Test("limits are inclusive")
    func limitsInclusive() throws {
        #expect(try member(#"{"user_id":"\#(String(repeating: "é", count: 128))"}"#).userID.count == 128)
        let frame = #"{"user_id":"1","user_info":""}"#
        let full = #"{"user_id":"1","user_info":"\#(String(repeating: "x", count: 1024 - frame.utf8.count))"}"#
        #expect(full.utf8.count == 1024)
        #expect(try member(full).userID == "1")
        #expect(throws: ProtocolError.self) { try member(full + " ") }
    }

    @Test("a signed-in user has an id, perhaps info and a watchlist of a hundred")
    func signedIn() throws {
        let plain = try user(#"{"id":"12345"}"#)
        #expect(plain.id == "12345" && plain.userInfo == nil && plain.watchlist.isEmpty && !plain.exceedsWatchlistLimit)
        let full = try user(#"{"id":"1","user_info":{ "a":1 },"watchlist":["7","8","7"],"more":true}"#)
        #expect(text(full.userInfo ?? []) == #"{"a":1}"#)
        #expect(full.watchlist == ["7", "8"])
        let ids = (0..<101).map { "\"\($0)\"" }
        #expect(try !user(#"{"id":"1","watchlist":[\#(ids.dropLast().joined(separator: ","))]}"#).exceedsWatchlistLimit)
        let cut = try user(#"{"id":"1","watchlist":[\#(ids.joined(separator: ","))]}"#)
        #expect(cut.exceedsWatchlistLimit && cut.watchlist.count == 100 && cut.watchlist.last == "99")
        #expect(try user(#"{"id":"1","watchlist":null}"#).watchlist.isEmpty)
    }

    @Test(
        "user_data that breaks a rule is refused",
        arguments: [
            "", "{}", "[]", #"{"id":1}"#, #"{"id":""}"#, #"{"id":null}"#, #"{"id":"1","watchlist":"7"}"#, #"{"id":"1","watchlist":[7]}"#,
            #"{"id":"1","watchlist":{}}"#, #"{"id":"\#(String(repeating: "x", count: 129))"}"#,
            #"{"id":"1","x":"\#(String(repeating: "x", count: 60_000))"}"#,
        ])
    func refusedUsers(data: String) {
        #expect { try user(data) } throws: { "\($0)".contains("user_data") }
    }

    @Test("truncated, damaged and random data never crashes")
    func random() {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("PresenceMember random seed: \(seed)")
        var generator = SeededRandom(state: seed)
        let sample = #"{"user_id":10,"id":"10","user_info":{"n":"Zo\u00eb"},"watchlist":["7","8"]}"#
        for count in 0..<sample.utf8.count {
            #expect(throws: ProtocolError.self) { try member(String(sample.prefix(count))) }
            #expect(throws: ProtocolError.self) { try user(String(sample.prefix(count))) }
        }
        var accepted = 0
        for _ in 0..<10_000 {
            let data = text(generator.damage(sample))
            if let member = try? member(data) {
                accepted += 1
                #expect(!member.userID.isEmpty, "seed \(seed)")
            }
            if let user = try? user(data) { #expect(!user.id.isEmpty, "seed \(seed)") }
        }
        #expect(accepted > 0, "seed \(seed)")
    }
}
