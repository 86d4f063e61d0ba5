import HubCore
import HubCrypto
import HubJSON
import LoadTesting
import PusherProtocol
import Testing

@Suite("PusherDialect")
struct PusherDialectTests {
    private static let established =
        #"{"event":"pusher:connection_established","data":"{\"socket_id\":\"123456.7890123\",\"activity_timeout\":120}"}"#

    private func dialect() throws -> PusherDialect {
        PusherDialect(app: .init(id: "1", key: "app-key", secret: "app-secret"), target: try Target("ws://127.0.0.1:6001/"))
    }

    private func subscription(_ channel: String) throws -> String {
        let steps = try dialect().opening(channel: channel)
        #expect(steps.map(\.awaited) == ["pusher:connection_established", "pusher_internal:subscription_succeeded"])
        let reply = try #require(steps[0].reply)
        return reply(Self.established)
    }

    @Test("subscribes to each kind of channel with the signature that it needs")
    func subscribing() throws {
        let socket = try #require(SocketID("123456.7890123"))
        #expect(try subscription("room") == #"{"event":"pusher:subscribe","data":{"channel":"room"}}"#)
        let signed = SubscriptionAuth.sign(socketID: socket, channel: "private-room", key: "app-key", secret: "app-secret")
        #expect(try subscription("private-room") == #"{"event":"pusher:subscribe","data":{"auth":"\#(signed)","channel":"private-room"}}"#)
        let member = SubscriptionAuth.sign(
            socketID: socket, channel: "presence-room", channelData: #"{"user_id":"member-1"}"#, key: "app-key", secret: "app-secret")
        #expect(
            try subscription("presence-room")
                == #"{"event":"pusher:subscribe","data":{"auth":"\#(member)","channel":"presence-room","channel_data":"{\"user_id\":\"member-1\"}"}}"#
        )
    }

    @Test("a publish is signed as the HTTP API wants it")
    func publishing() throws {
        guard case .http(let bytes) = try dialect().publish(channel: "room", data: #"{"m":"x"}"#) else {
            Issue.record("not HTTP")
            return
        }
        let text = String(decoding: bytes, as: UTF8.self)
        let body = #"{"name":"load","channel":"room","data":"{\"m\":\"x\"}"}"#
        #expect(text.hasSuffix("Content-Length: \(body.utf8.count)\r\n\r\n\(body)"))
        let target = try #require(text.split(separator: " ").dropFirst().first)
        let parts = target.split(separator: "?")
        #expect(parts[0] == "/apps/1/events")
        let signature = try #require(parts[1].range(of: "&auth_signature="))
        let signed = "POST\n/apps/1/events\n\(parts[1][..<signature.lowerBound])"
        #expect(parts[1][signature.upperBound...] == Hex.encode(HMAC.sha256(key: "app-secret".utf8, message: signed.utf8)))
        #expect(parts[1].contains("body_md5=\(Hex.encode(Digest.md5(body.utf8)))&"))
    }
}

@Suite("Target")
struct TargetTests {
    @Test("is read from a URL, with the scheme's port and without a slash at its end")
    func urls() throws {
        let plain = try Target("ws://127.0.0.1:6001")
        #expect((plain.host, plain.port, plain.isSecure, plain.prefix) == ("127.0.0.1", 6001, false, ""))
        #expect(plain.isLoopback)
        let secure = try Target("wss://127.0.0.1/behind/")
        #expect((secure.port, secure.isSecure, secure.prefix) == (443, true, "/behind"))
        #expect(try !Target("http://10.0.0.1:80").isLoopback)
    }

    @Test(
        "is refused in a sentence", arguments: ["127.0.0.1:6001", "ws://", "ws://127.0.0.1:0", "ws://127.0.0.1:70000", "ftp://127.0.0.1"])
    func refused(url: String) {
        #expect(throws: LoadError.self) { try Target(url) }
    }
}

@Suite("PublishPlan")
struct PublishPlanTests {
    @Test("an event's data is JSON of the length that was asked for, and holds its mark", arguments: [48, 49, 128, 10_240])
    func data(bytes: Int) throws {
        let plan = PublishPlan(channels: ["a"], pace: .rate(1), connections: 1, bytes: bytes, kind: 0, answeredKind: 1)
        let mark = EventMark(kind: 0, stream: 1, due: 2, sequence: 3)
        let text = plan.data(mark)
        #expect(EventMark.find(in: Array(text.utf8)) == mark)
        #expect(try JSONValue(parsing: text)["m"]?.stringValue == mark.text)
        #expect(text.utf8.count == bytes)
    }
}
