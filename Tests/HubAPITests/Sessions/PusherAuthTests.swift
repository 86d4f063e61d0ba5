import HubCore
import HubCrypto
import HubDelivery
import HubJSON
import PusherProtocol
import Testing

@testable import HubAPI

@Suite("/pusher/auth, /pusher/user-auth and /me")
struct PusherAuthTests {
    /// The application of the vectors (docs/protocol.md, 4.2).
    private static let vectorKey = "278d425bdf160c739803"
    private static let vectorSecret = "7ad3773142a6692b25b8"

    private func key(_ name: String) -> HMACKey? { Hub.secrets[name].map { HMACKey($0) } }

    @Test("a presence channel of the session is signed, and the socket is bound before")
    func presence() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let token = try await hub.token(["device_id": "phone"])
        hub.delivery.forget()
        let answer = try await hub.send("POST", "/pusher/auth", form: "socket_id=1234.5678&channel_name=presence-quiz-s1", token: token)
        #expect(answer.status == 200 && answer.json.objectValue?.keys.sorted() == ["auth", "channel_data"])
        let data = try #require(answer["channel_data"]?.stringValue)
        #expect(data == #"{"user_id":"1","user_info":{"name":"Ann","role":"player"}}"#)
        let socketID = SocketID(first: 1234, second: 5678)
        let auth = SubscriptionAuth.sign(
            socketID: socketID, channel: "presence-quiz-s1", channelData: data, key: "alpha-key", secret: "alpha-secret")
        #expect(answer["auth"] == .string(auth))
        let channel = try #require(ChannelName("presence-quiz-s1"))
        #expect(throws: Never.self) {
            try SubscriptionAuth.verify(auth: auth, socketID: socketID, channel: channel, channelData: data, key: key)
        }
        #expect(hub.delivery.calls == [.bind(socketID: "1234.5678", app: "1", user: "1", device: "phone", channel: "presence-quiz-s1")])
    }

    @Test("the vectors of docs/protocol.md, 4.2, come out of the endpoints")
    func vectors() async throws {
        let file = ("foobar.yaml", "channel: private-{session}\nevents: { ping: { to: all, policy: realtime_only } }")
        let hub = try Hub(files: [file], secrets: [Self.vectorKey: Self.vectorSecret])
        try await hub.makeSession("foobar", definition: "foobar")
        let token = try await hub.token()
        let answer = try await hub.send("POST", "/pusher/auth", form: "channel_name=private-foobar&socket_id=1234.1234", token: token)
        let signature = "58df8b0c36d6982b82c3ecf6b4662e34fe8c25bba48f5369f135bf843651c3a4"
        #expect(answer.json == ["auth": .string("\(Self.vectorKey):\(signature)")])
    }

    @Test("a signed member of the longest ids and names stays within what the hub takes")
    func memberSize() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let wide = String(repeating: "\u{1F600}", count: 128)
        let name = JSONValue.string(String(repeating: "\u{1F600}", count: 100))
        _ = try await hub.call("PUT", "sessions/s1/participants/\(wide)", ["name": name, "email": "w@example.com", "role": "player"])
        let token = try #require(try await hub.call("POST", "sessions/s1/participants/\(wide)/token", [:])["token"]?.stringValue)
        let answer = try await hub.send("POST", "/pusher/auth", form: "socket_id=1.2&channel_name=presence-quiz-s1", token: token)
        let parser = JSONParser(capacityBytes: 2048)
        let data = try #require(answer["channel_data"]?.stringValue)
        #expect(try PresenceMember.parse(channelData: data, limits: UserLimits(), with: parser).userID == wide)
    }

    @Test("JSON bodies are good too")
    func json() async throws {
        let hub = try Hub()
        try await hub.makeSession("d1", definition: "duel")
        let token = try await hub.token()
        let answer = try await hub.send("POST", "/pusher/auth", ["socket_id": "1.2", "channel_name": "private-d1"], token: token)
        #expect(answer.status == 200 && answer["channel_data"] == nil && answer["auth"] != nil)
    }

    @Test("a participant's own channel is signed, others' are not")
    func ownChannel() async throws {
        let hub = try Hub()
        try await hub.makeSession("o1", definition: "orders")
        let token = try await hub.token()
        let ask = { (channel: String) in
            try await hub.send("POST", "/pusher/auth", form: "socket_id=1.2&channel_name=\(channel)", token: token).status
        }
        #expect(try await ask("private-orders-o1-1") == 200)
        for other in ["private-orders-o1-2", "private-orders-o2-1", "private-orders-o1-1x", "private-orders-o1-"] {
            #expect(try await ask(other) == 403, "\(other)")
        }
    }

    @Test(
        "channels that are not the session's are a 403 with a sentence, and nothing is bound",
        arguments: [
            "presence-quiz-s2", "private-quiz-s1", "presence-quiz-s1x", "presence-quiz-", "public", "private-s1", "private-encrypted-s1",
            "presence-quiz-S1",
        ])
    func foreignChannels(channel: String) async throws {
        let hub = try Hub()
        try await hub.makeSession()
        try await hub.makeSession("s2", code: "OTHER")
        let token = try await hub.token()
        hub.delivery.forget()
        let answer = try await hub.send("POST", "/pusher/auth", form: "socket_id=1.2&channel_name=\(channel)", token: token)
        #expect(answer.status == 403 && answer.error.contains("presence-quiz-s1"))
        #expect(hub.delivery.calls.isEmpty)
    }

    @Test("a definition of more particular pattern takes its channels away")
    func particularPattern() async throws {
        let hub = try Hub()
        try await hub.makeSession("d1", definition: "duel")
        let token = try await hub.token()
        #expect(try await hub.send("POST", "/pusher/auth", form: "socket_id=1.2&channel_name=private-d1", token: token).status == 200)
        let more = Hub.files + [("vip.yaml", "channel: private-d{session}\nevents: { ping: { to: all, policy: realtime_only } }")]
        let reloaded = try Hub(files: more, sharing: hub)
        #expect(try await reloaded.send("POST", "/pusher/auth", form: "socket_id=1.2&channel_name=private-d1", token: token).status == 403)
    }

    @Test(
        "what is wrong with the request is named",
        arguments: [
            ("channel_name=presence-quiz-s1", "socket_id is missing"), ("socket_id=1.2", "channel_name is missing"),
            ("socket_id=12&channel_name=presence-quiz-s1", "socket_id is not valid"),
            ("socket_id=1.2%3Apresence-x&channel_name=presence-quiz-s1", "socket_id is not valid"),
            ("socket_id=1.9007199254740992&channel_name=presence-quiz-s1", "socket_id is not valid"),
            ("socket_id=1.2&channel_name=a%20b", "channel_name is not valid"), ("socket_id=1.2&channel_name=", "channel_name is not valid"),
            ("", "empty"), ("socket_id=%", "form"),
        ])
    func badRequests(form: String, mentions: String) async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let answer = try await hub.send("POST", "/pusher/auth", form: form, token: try await hub.token())
        #expect(answer.status == 400 && answer.error.contains(mentions), "\(answer.error)")
    }

    @Test("a sign-in is signed with the participant's id and what others may know")
    func signIn() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let token = try await hub.token(["device_id": "phone"])
        hub.delivery.forget()
        let answer = try await hub.send("POST", "/pusher/user-auth", form: "socket_id=1.2", token: token)
        let data = try #require(answer["user_data"]?.stringValue)
        #expect(data == #"{"id":"1","user_info":{"name":"Ann","role":"player"}}"#)
        let auth = try #require(answer["auth"]?.stringValue)
        #expect(throws: Never.self) {
            try SubscriptionAuth.verifyUser(auth: auth, socketID: SocketID(first: 1, second: 2), userData: data, key: key)
        }
        #expect(hub.delivery.calls == [.bind(socketID: "1.2", app: "1", user: "1", device: "phone")])
        #expect(try await hub.send("POST", "/pusher/user-auth", form: "socket_id=x", token: token).status == 400)
    }

    private static let protected = [
        ("POST", "/pusher/auth"), ("POST", "/pusher/user-auth"), ("PUT", "/me/state"), ("PUT", "/me/device"), ("DELETE", "/me/device"),
    ]

    @Test("without a good token there is a 401 that challenges", arguments: protected)
    func unauthorized(method: String, path: String) async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let token = try await hub.token()
        let body: JSONValue = ["socket_id": "1.2", "channel_name": "presence-quiz-s1", "state": "background", "token": "t"]
        hub.delivery.forget()
        for header in [nil, "", "Bearer", "Bearer ", "Basic \(token)", "Bearer x\(token)", token, "Bearer \(token) x"] as [String?] {
            var headers: [String: String] = [:]
            headers["authorization"] = header
            let answer = try await hub.send(method, path, body, headers: headers)
            #expect(answer.status == 401 && answer.headers["WWW-Authenticate"] == "Bearer" && !answer.error.isEmpty)
            #expect(!answer.error.contains(token))
        }
        #expect(try await hub.send(method, path, body, headers: ["authorization": "bearer  \(token)"]).status == 200)
        hub.delivery.forget()

        hub.clock.advance(seconds: 86_400)
        #expect(try await hub.send(method, path, body, token: token).error.contains("expired"))
        hub.clock.advance(seconds: -86_400)
        _ = try await hub.call("DELETE", "sessions/s1/participants/1")
        let removed = try await hub.send(method, path, body, token: token)
        #expect(removed.status == 401 && removed.error.contains("removed"))
        #expect(hub.delivery.calls == [.removed(session: "s1", user: "1")])
    }

    @Test("an older token stays good when its participant joins again")
    func olderToken() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let first = try await hub.token()
        _ = try await hub.token()
        #expect(try await hub.send("PUT", "/me/state", ["state": "foreground"], token: first).status == 200)
    }

    @Test("a disabled app's tokens are refused")
    func disabledApp() async throws {
        let hub = try Hub()
        _ = try await hub.call("PUT", "sessions/s1", ["definition": "quiz"], app: "3")
        _ = try await hub.call("PUT", "sessions/s1/participants/ann", ["name": "Ann"], app: "3")
        let app = try #require(hub.apps.app(id: "3"))
        let ann = try #require(try await hub.directory.participant(app: "3", session: "s1", user: "ann"))
        let token = ParticipantToken.issue(app: app, participant: ann, device: "d", scope: .session, nowSeconds: hub.clock.wallSeconds)
        #expect(try await hub.send("PUT", "/me/state", ["state": "foreground"], token: token).status == 403)
    }

    @Test("an app tells its state", arguments: [("foreground", AppState.foreground), ("background", .background)])
    func state(word: String, state: AppState) async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let token = try await hub.token(["device_id": "phone"])
        hub.delivery.forget()
        let answer = try await hub.send("PUT", "/me/state", ["state": .string(word)], token: token)
        #expect(answer.status == 200 && answer["state"] == .string(word))
        #expect(hub.delivery.calls == [.state(app: "1", user: "1", device: "phone", state)])
        for wrong in [["state": "unknown"], ["state": 1], [:]] as [JSONValue] {
            #expect(try await hub.send("PUT", "/me/state", wrong, token: token).status == 400)
        }
        #expect(hub.delivery.calls.count == 1)
    }

    @Test("a page that goes away tells its state with its token in the body, which has 8 KiB at the most")
    func beacon() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let token = try await hub.token(["device_id": "phone"])
        hub.delivery.forget()
        let answer = try await hub.send("POST", "/me/state", ["token": .string(token), "state": "background"])
        #expect(answer.status == 200 && answer["state"] == "background")
        #expect(hub.delivery.calls == [.state(app: "1", user: "1", device: "phone", .background)])
        let wrong: [(JSONValue, Int)] = [
            (["state": "background"], 401), (["token": "no.token", "state": "background"], 401), (["token": 1, "state": "background"], 400),
            (["token": .string(token)], 400), (["token": .string(token), "state": .string(String(repeating: "x", count: 8192))], 413),
        ]
        for (body, status) in wrong { #expect(try await hub.send("POST", "/me/state", body).status == status) }
        #expect(hub.delivery.calls.count == 1)
    }

    @Test("an app says that it keeps working in the background; on the screen that means nothing")
    func keepsWorking() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let token = try await hub.token(["device_id": "phone"])
        hub.delivery.forget()
        let cases: [(JSONValue, AppState, Bool)] = [
            (["state": "background", "keeps_working": true], .background, true), (["state": "background"], .background, false),
            (["state": "background", "keeps_working": .null], .background, false),
            (["state": "foreground", "keeps_working": true], .foreground, false),
        ]
        for (body, _, isKept) in cases {
            let answer = try await hub.send("PUT", "/me/state", body, token: token)
            #expect(answer.status == 200 && answer["keeps_working"] == .bool(isKept), "\(answer)")
        }
        #expect(hub.delivery.calls == cases.map { .state(app: "1", user: "1", device: "phone", $0.1, keepsWorking: $0.2) })
        for wrong in ["yes", 1, [true]] as [JSONValue] {
            let answer = try await hub.send("PUT", "/me/state", ["state": "background", "keeps_working": wrong], token: token)
            #expect(answer.status == 400 && answer.error.contains("keeps_working"))
        }
        #expect(hub.delivery.calls.count == cases.count)
    }

    @Test("an app registers, changes and removes the device of its token, and no other")
    func device() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let token = try await hub.token(["device_id": "phone"])
        let put = try await hub.send("PUT", "/me/device", ["token": .string(hexToken), "locale": "de", "device": "other"], token: token)
        #expect(
            put.status == 200 && put["device"] == "phone" && put["user"] == "1" && put["platform"] == "ios" && put["provider"] == "apns")
        #expect(put["has_token"] == true && !put.json.text.contains(hexToken.lowercased()))
        #expect(try await hub.directory.device(app: "1", user: "1", id: "phone")?.token == hexToken.lowercased())

        let denied = try await hub.send("PUT", "/me/device", ["notifications": false], token: token)
        #expect(denied["notifications"] == false && denied["has_token"] == true && denied["locale"] == "de")
        // A refreshed token is no consent.
        #expect(try await hub.send("PUT", "/me/device", ["token": .string(fcmToken)], token: token)["notifications"] == false)
        #expect(try await hub.send("PUT", "/me/device", ["platform": "ios"], token: token).status == 400)
        #expect(try await hub.send("PUT", "/me/device", ["token": "x y"], token: token).status == 400)

        #expect(try await hub.send("DELETE", "/me/device", token: token).json == [:])
        #expect(try await hub.directory.devices(app: "1", user: "1").isEmpty)
        #expect(try await hub.send("DELETE", "/me/device", token: token).status == 200)
    }

    @Test("a shared phone's token goes over to who registered it last")
    func sharedPhone() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        _ = try await hub.token(["device_token": .string(fcmToken)])
        _ = try await hub.token(["device_token": .string(fcmToken)], email: "bob@example.com")
        #expect(try await hub.directory.devices(app: "1", user: "1").map(\.token) == [nil])
        #expect(try await hub.directory.devices(app: "1", user: "2").map(\.token) == [fcmToken])
    }

    @Test(
        "wrong methods get a 405 that names the right ones",
        arguments: [
            ("GET", "/pusher/auth", "POST"), ("PUT", "/pusher/user-auth", "POST"), ("GET", "/me/state", "PUT, POST"),
            ("PATCH", "/me/device", "PUT, DELETE"),
        ])
    func methods(method: String, path: String, allowed: String) async throws {
        let answer = try await Hub().send(method, path)
        #expect(answer.status == 405 && answer.headers["Allow"] == allowed)
    }

    @Test(
        "other paths are somebody else's",
        arguments: ["/", "/pusher", "/me", "/me/event", "/api/scenarios/sessions/A", "/apps/1/sessions/s"])
    func otherPaths(path: String) async throws {
        let hub = try Hub()
        #expect(await hub.open.respond(to: HTTPRequest(method: "GET", path: path)) == nil)
    }
}
