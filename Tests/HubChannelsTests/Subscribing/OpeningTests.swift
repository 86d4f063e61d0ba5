import HubCore
import HubJSON
import PusherProtocol
import Testing

@testable import HubChannels

@Suite("Opening connections")
struct OpeningTests {
    @Test("C01: the first frame is connection_established with a string, a timeout and a socket id")
    func established() throws {
        let hub = TestHub { $0.activityTimeoutSeconds = 90 }
        let client = hub.open()
        #expect(client.frames.count == 1)
        #expect(client.frames[0]["event"] == "pusher:connection_established")
        let data = TestClient.data(client.frames[0])
        #expect(data["activity_timeout"] == 90)
        let socketID = try #require(SocketID(client.socketID))
        #expect(hub.engines[0].connection(socketID: socketID) == client.id)
        #expect(client.silenceWatches == 1)
        #expect(hub.violations.isEmpty)
    }

    @Test("C03, 4003 and 4005: an error event and a close with the same code, and no handshake")
    func refusals() {
        let hub = TestHub()
        for (key, code) in [("nobody", 4001), ("KEY", 4001), ("off", 4003), (nil, 4005)] as [(String?, Int)] {
            let client = hub.open(key: key)
            #expect(client.frames.count == 1)
            #expect(client.errors.first?["code"] == .int(Int64(code)))
            #expect(client.closeCode.map(Int.init) == code)
            // Messages of the client before it has read the close change nothing.
            hub.say(client, #"{"event":"pusher:ping"}"#)
            hub.subscribe(client, "news")
            #expect(client.frames.count == 1)
            hub.close(client)
        }
        #expect(hub.engines[0].connectionIDs.isEmpty)
        #expect(hub.violations.isEmpty)
    }

    @Test(
        "C04: protocols 4 to 7 and none are accepted, others not",
        arguments: [
            ("4", nil), ("5", nil), ("6", nil), ("7", nil), (nil, nil), ("3", 4007), ("8", 4007), ("99", 4007), ("abc", 4006), ("", 4006),
            ("7.0", 4006),
        ] as [(String?, UInt16?)])
    func versions(version: String?, code: UInt16?) {
        let hub = TestHub()
        let client = hub.open(version: version)
        #expect(client.closeCode == code)
        #expect(client.named("pusher:connection_established").count == (code == nil ? 1 : 0))
        #expect(hub.violations.isEmpty)
    }

    @Test("4004: connections past the app's limit are refused, over all loops, until one goes")
    func limit() {
        let hub = TestHub(loops: 2) { $0.connectionsMax = 3 }
        let inside = [hub.open(0), hub.open(1), hub.open(0)]
        let refused = hub.open(1)
        #expect(refused.closeCode == 4004)
        hub.close(refused)
        #expect(hub.open(0).closeCode == 4004, "a refused connection frees nothing when it goes")
        hub.close(inside[1])
        #expect(hub.open(1).closeCode == nil)
        #expect(hub.open(1, key: "other").closeCode == nil, "another app's connections are not counted")
        #expect(hub.violations.isEmpty)
    }

    @Test("4009: an origin that is not listed is refused; clients without one are let in")
    func origins() {
        let hub = TestHub { $0.allowedOrigins = ["https://a.example"] }
        #expect(hub.open(origin: "https://a.example").closeCode == nil)
        #expect(hub.open(origin: nil).closeCode == nil)
        #expect(hub.open(origin: "https://b.example").closeCode == 4009)
        #expect(TestHub().open(origin: "https://b.example").closeCode == nil)
    }

    @Test("C05: pusher:ping is answered, whatever its data, before and after subscribing")
    func ping() {
        let hub = TestHub()
        let client = hub.open()
        for _ in 0..<2 {
            for data in ["", #","data":{}"#, #","data":"""#, #","data":null"#, #","data":"{}""#] {
                hub.say(client, #"{"event":"pusher:ping"\#(data)}"#)
                #expect(client.texts.last == #"{"event":"pusher:pong","data":"{}"}"#)
            }
            hub.say(client, #"{"event":"pusher:pong","data":{}}"#)
            hub.subscribe(client, "news")
        }
        #expect(client.named("pusher:pong").count == 10)
        #expect(client.errors.isEmpty)
        #expect(hub.violations.isEmpty)
    }

    @Test(
        "C31: malformed input is answered with an error without a code, and the connection goes on",
        arguments: [
            "", " ", "nonsense", "[]", "[1]", "1", "null", "\"text\"", "{", "{}", #"{"event":1}"#, #"{"event":null}"#,
            #"{"event":"pusher:subscribe"}"#,
            #"{"event":"pusher:subscribe","data":1}"#, #"{"event":"pusher:subscribe","data":{}}"#,
            #"{"event":"pusher:subscribe","data":{"channel":1}}"#,
            #"{"event":"pusher:subscribe","data":"{"}"#, #"{"event":"pusher:subscribe","data":{"channel":"a","auth":1}}"#,
            #"{"event":"pusher:unsubscribe","data":{}}"#, #"{"event":"pusher:nonsense","data":{}}"#,
            #"{"event":"pusher_internal:member_added","channel":"news","data":"{}"}"#,
            #"{"event":"pusher:signin","data":{"auth":"a","user_data":"b"}}"#, #"{"event":"client-x"}"#,
            #"{"event":"client-x","channel":"private-a"}"#,
            #"{"event":"message","channel":"news","data":"x"}"#, #"{"event":"client-x","channel":"","data":1}"#,
        ])
    func malformed(text: String) {
        let hub = TestHub()
        let client = hub.open()
        hub.say(client, text)
        #expect(client.errors.count == 1)
        #expect(client.errors.first?["code"] == .null)
        #expect(client.closeCode == nil)
        hub.subscribe(client, "news")
        #expect(client.acknowledgements("news") == 1)
        #expect(hub.violations.isEmpty)
    }

    @Test("C31: bytes that are no UTF-8, deep nesting, binary and long messages")
    func hostile() {
        let hub = TestHub()
        let client = hub.open()
        hub.say(client, [0xFF, 0xFE, 0x7B])
        hub.say(client, Array(#"{"event":"pusher:ping","data":""#.utf8) + [0xC3] + Array("\"}".utf8))
        hub.say(client, String(repeating: "[", count: 10_000))
        hub.say(client, #"{"event":"pusher:ping","data":"# + String(repeating: "[", count: 100) + String(repeating: "]", count: 100) + "}")
        hub.say(client, String(repeating: "x", count: ChannelEngine.frameBytesMax + 1))
        hub.engines[0].receivedBinary(from: client.id)
        #expect(client.errors.count == 6)
        #expect(client.errors.allSatisfy { $0["code"] == .null })
        #expect(client.closeCode == nil)
        hub.say(client, #"{"event":"pusher:ping"}"#)
        #expect(client.named("pusher:pong").count == 1)
        hub.engines[0].receivedTooMuch(from: client.id)
        #expect(client.closeCode == 1009)
        #expect(hub.violations.isEmpty)
    }

    @Test("C31: random bytes around valid frames, from a printed seed, never stop the engine nor break a frame")
    func fuzz() {
        let seed = UInt64.random(in: 1...UInt64.max)
        let hub = TestHub(seed: seed)
        let client = hub.open()
        let texts = [
            #"{"event":"pusher:subscribe","data":{"channel":"news","auth":"","channel_data":"{\"user_id\":1}"}}"#,
            #"{"event":"pusher:unsubscribe","data":{"channel":"news"}}"#,
            #"{"event":"client-a","channel":"private-a","data":{"x":[1,"é"]}}"#,
            #"{"event":"pusher:ping","data":{}}"#,
        ]
        for _ in 0..<2000 {
            var bytes = Array(texts[hub.random.below(texts.count)].utf8)
            for _ in 0...hub.random.below(3) { bytes[hub.random.below(bytes.count)] = UInt8(truncatingIfNeeded: hub.random.next()) }
            hub.say(client, bytes)
            // A channel it left by chance may be acknowledged again.
            client.left("news")
        }
        #expect(hub.violations.filter { !$0.contains("acknowledgement") }.isEmpty, "seed \(seed)")
        #expect(client.closeCode == nil)
    }
}

@Suite("ProcessTag")
struct ProcessTagTests {
    @Test(
        "socket ids lead back to their connections",
        arguments: [
            ConnectionID(loop: 0, slot: 0, generation: 0), ConnectionID(loop: 255, slot: (1 << 24) - 1, generation: .max),
            ConnectionID(loop: 3, slot: 70_000, generation: 9),
        ])
    func roundTrip(connection: ConnectionID) throws {
        for random in [0, UInt64.max, 0x1234_5678_9ABC_DEF0] {
            let tag = ProcessTag(random: random)
            let socketID = tag.socketID(of: connection)
            #expect(socketID.first < SocketID.numberEnd && socketID.second < SocketID.numberEnd)
            #expect(try tag.connection(of: #require(SocketID(socketID.description))) == connection)
        }
    }

    @Test("SipHash-2-4 as its authors published it")
    func vector() {
        #expect(SipHash(key: (0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908)).hash(0x0706_0504_0302_0100) == 0x93F5_F579_9A93_2462)
    }

    @Test("nobody finds another connection's socket id from their own")
    func neighbours() {
        let tag = ProcessTag(random: 0x1234_5678_9ABC_DEF0, 42)
        let ids = (0..<2000).map { tag.socketID(of: ConnectionID(loop: 0, slot: $0, generation: 1)) }
        // The bits beside the connection's own are of all values, and those of a neighbour lead nowhere.
        #expect(Set(ids.map { $0.first >> 32 }).count > 1990 && Set(ids.map { $0.second >> 32 }).count > 1990)
        for (own, next) in zip(ids, ids.dropFirst()) {
            let guesses = [
                SocketID(first: own.first + 1, second: own.second), SocketID(first: own.first, second: own.second + 1),
                SocketID(first: own.first & ~0xFFFF_FFFF | next.first & 0xFFFF_FFFF, second: next.second),
            ]
            #expect(guesses.allSatisfy { tag.connection(of: $0) == nil })
        }
    }

    @Test("ids of other processes and invented ones name nobody")
    func foreign() {
        let tag = ProcessTag(random: 1)
        #expect(tag.connection(of: SocketID(first: 1234, second: 1234)) == nil)
        #expect(tag.connection(of: SocketID(first: SocketID.numberEnd - 1, second: SocketID.numberEnd - 1)) == nil)
        let id = ConnectionID(loop: 0, slot: 1, generation: 1)
        let other = ProcessTag(random: 2).socketID(of: id)
        let own = tag.socketID(of: id)
        #expect(tag.connection(of: other) == nil)
        #expect(tag.connection(of: SocketID(first: own.first, second: other.first)) == nil || own.first == other.first)
        #expect(tag.connection(of: SocketID(first: own.first, second: 5)) == nil)
        #expect(tag.connection(of: SocketID(first: 5, second: own.second)) == nil)
    }
}
