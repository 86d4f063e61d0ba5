import HubCore
import HubJSON
import PusherProtocol
import Testing

@Suite("ServerEvent")
struct ServerEventTests {
    private func channel(_ name: String) throws -> ChannelName {
        try #require(ChannelName(allowingServerToUser: name))
    }

    @Test("frames have exactly the documented bytes")
    func bytes() throws {
        let a = try channel("private-a")
        let presence = try channel("presence-a")
        let expected: [([UInt8], String)] = [
            (
                ServerEvent.connectionEstablished(socketID: SocketID(first: 123_456, second: 7_890_123), activityTimeoutSeconds: 120),
                #"{"event":"pusher:connection_established","data":"{\"socket_id\":\"123456.7890123\",\"activity_timeout\":120}"}"#
            ),
            (
                ServerEvent.error(code: 4001, message: "Application does not exist"),
                #"{"event":"pusher:error","data":{"code":4001,"message":"Application does not exist"}}"#
            ),
            (ServerEvent.error(code: nil, message: "a \"b\"\n"), #"{"event":"pusher:error","data":{"code":null,"message":"a \"b\"\n"}}"#),
            (ServerEvent.error(.overCapacity), #"{"event":"pusher:error","data":{"code":4100,"message":"Over capacity"}}"#),
            (ServerEvent.ping(), #"{"event":"pusher:ping","data":"{}"}"#), (ServerEvent.pong(), #"{"event":"pusher:pong","data":"{}"}"#),
            (
                ServerEvent.subscriptionSucceeded(channel: a),
                #"{"event":"pusher_internal:subscription_succeeded","channel":"private-a","data":"{}"}"#
            ),
            (
                ServerEvent.presenceSucceeded(channel: presence, members: [("10", Array(#"{"name":"A"}"#.utf8)), ("1\"1", nil)]),
                #"{"event":"pusher_internal:subscription_succeeded","channel":"presence-a","data":"{\"presence\":{\"count\":2,\"ids\":[\"10\",\"1\\\"1\"],\"hash\":{\"10\":{\"name\":\"A\"},\"1\\\"1\":null}}}"}"#
            ),
            (
                ServerEvent.presenceSucceeded(channel: presence, members: []),
                #"{"event":"pusher_internal:subscription_succeeded","channel":"presence-a","data":"{\"presence\":{\"count\":0,\"ids\":[],\"hash\":{}}}"}"#
            ),
            (
                ServerEvent.memberAdded(channel: presence, userID: "10", userInfo: Array(#"{"name":"Zoë"}"#.utf8)),
                #"{"event":"pusher_internal:member_added","channel":"presence-a","data":"{\"user_id\":\"10\",\"user_info\":{\"name\":\"Zoë\"}}"}"#
            ),
            (
                ServerEvent.memberAdded(channel: presence, userID: "10", userInfo: nil),
                #"{"event":"pusher_internal:member_added","channel":"presence-a","data":"{\"user_id\":\"10\"}"}"#
            ),
            (
                ServerEvent.memberRemoved(channel: presence, userID: "10"),
                #"{"event":"pusher_internal:member_removed","channel":"presence-a","data":"{\"user_id\":\"10\"}"}"#
            ),
            (
                ServerEvent.subscriptionError(channel: "bad \"name\"", type: "AuthError", error: "No.", status: 401),
                #"{"event":"pusher:subscription_error","channel":"bad \"name\"","data":"{\"type\":\"AuthError\",\"error\":\"No.\",\"status\":401}"}"#
            ),
            (ServerEvent.cacheMiss(channel: a), #"{"event":"pusher:cache_miss","channel":"private-a","data":"{}"}"#),
            (
                ServerEvent.subscriptionCount(channel: a, count: 3),
                #"{"event":"pusher_internal:subscription_count","channel":"private-a","data":"{\"subscription_count\":3}"}"#
            ),
            (
                ServerEvent.signInSuccess(userData: #"{"id":"12345","watchlist":["7","8"]}"#),
                #"{"event":"pusher:signin_success","data":"{\"user_data\":\"{\\\"id\\\":\\\"12345\\\",\\\"watchlist\\\":[\\\"7\\\",\\\"8\\\"]}\"}"}"#
            ),
            (
                ServerEvent.watchlistEvents(online: ["7"], offline: ["8", "9"]),
                #"{"event":"pusher_internal:watchlist_events","data":"{\"events\":[{\"name\":\"online\",\"user_ids\":[\"7\"]},{\"name\":\"offline\",\"user_ids\":[\"8\",\"9\"]}]}"}"#
            ),
            (
                ServerEvent.watchlistEvents(online: [], offline: ["8"]),
                #"{"event":"pusher_internal:watchlist_events","data":"{\"events\":[{\"name\":\"offline\",\"user_ids\":[\"8\"]}]}"}"#
            ),
            (
                ServerEvent.event(name: #"App\Events\X"#, channel: a, data: DataLiteral(content: "not json")),
                #"{"event":"App\\Events\\X","channel":"private-a","data":"not json"}"#
            ),
            (
                ServerEvent.event(name: "client-a", channel: presence, data: DataLiteral(content: #"{"x":1}"#), userID: "1\"0"),
                #"{"event":"client-a","channel":"presence-a","data":"{\"x\":1}","user_id":"1\"0"}"#
            ),
            (
                ServerEvent.event(name: "note", channel: try channel("#server-to-user-12345"), data: DataLiteral(content: "{}")),
                ##"{"event":"note","channel":"#server-to-user-12345","data":"{}"}"##
            ),
        ]
        for (frame, wanted) in expected {
            #expect(text(frame) == wanted)
            let value = try JSONValue(parsing: frame)
            #expect(value["data"] != nil && value["data"] != .null, "\(wanted)")
            #expect(value["channel"] != .null && value["user_id"] != .null, "\(wanted)")
            if value["event"] == "pusher:error" {
                #expect(value["data"]?.objectValue != nil)
            } else {
                #expect(value["data"]?.stringValue != nil)
            }
        }
    }

    @Test(
        "events in their frames are the events with a frame around each", arguments: ["n", "", "App\\Events\\X", "a\"b\nc", "ünï", "\u{1}"])
    func eventFrames(name: String) throws {
        let channels = try ["a", "presence-with-a-name-that-is-longer", "#server-to-user-é", "b"].map(channel)
        for count in [0, 1, 40, 60, 70, 80, 90, 100, 110, 125, 126, 127, 65_440, 65_500, 65_536, 70_000] {
            let data = DataLiteral(content: String(repeating: "\"", count: count))
            for channels in [[], [channels[0]], channels, channels.reversed()] {
                let frames = ServerEvent.eventFrames(name: name, channels: OneOrMany(channels), data: data)
                #expect(frames.map(\.channel) == channels)
                #expect(
                    frames.allSatisfy { $0.frame == Frame.text(ServerEvent.event(name: name, channel: $0.channel, data: data)) },
                    "\(name) \(count)")
            }
        }
    }

    @Test("a publisher's literal goes into the frame unchanged, behind what the buffer holds")
    func literal() throws {
        var buffer = Array("x".utf8)
        ServerEvent.appendEvent(name: "e", channel: try channel("a"), dataLiteral: Array(#""\u00eb\/""#.utf8), to: &buffer)
        #expect(text(buffer) == #"x{"event":"e","channel":"a","data":"\u00eb\/"}"#)
    }

    @Test("a data literal keeps content and size")
    func dataLiteral() {
        let literal = DataLiteral(content: "a\"\\\n\u{1}é")
        #expect(text(Array(literal.bytes)) == "\"a\\\"\\\\\\n\\u0001é\"")
        #expect(literal.content == "a\"\\\n\u{1}é")
        #expect(literal.contentByteCount == 7)
        #expect(literal.contentValue == nil)
        #expect(DataLiteral(content: #"{"a":[1]}"#).contentValue == ["a": [1]])
    }
}
