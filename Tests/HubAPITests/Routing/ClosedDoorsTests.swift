import HubCore
import HubDelivery
import Testing

@testable import HubAPI

/// Strangers, and people who know one join code or one e-mail, try what is not theirs.
@Suite("Closed doors")
struct ClosedDoorsTests {
    private func devices(_ hub: Hub, _ user: String) async throws -> [Device] { try await hub.directory.devices(app: "1", user: user) }

    private func register(_ hub: Hub, _ client: String, token: String = "stranger", key: String = "alpha-key") async throws -> Answer {
        try await hub.send(
            "POST", "/games", ["device_token": .string(token), "device_platform": "android", "app_key": .string(key)],
            headers: ["x-client-id": client])
    }

    @Test(
        "an unauthenticated registration touches no row of anybody, by no id",
        arguments: ["phone", "unnamed-android", adasHandle, adasPhone])
    func registration(client: String) async throws {
        let hub = try Hub()
        try await hub.makeSession()
        _ = try await hub.call("PUT", "users/u1/devices/phone", ["token": "victim", "platform": "android"])
        _ = try await hub.call("PUT", "users/u2/devices/\(adasPhone)", ["token": "second", "platform": "android"])
        _ = try await hub.join(["device_token": "ann", "device_platform": "android"])
        _ = try await hub.join(
            ["device_token": "ben", "device_platform": "android"], email: "ben@example.com", headers: ["x-client-id": adasPhone])
        let answer = try await register(hub, client)
        #expect(answer.status == (InstallationID(client) == nil ? 400 : 200), "\(answer.error)")
        #expect(try await devices(hub, "u1").map(\.token) == ["victim"])
        #expect(try await devices(hub, "u2").map(\.token) == ["second"])
        #expect(try await devices(hub, "1").map(\.token) == ["ann"])
        #expect(try await devices(hub, "2").map(\.token) == ["ben"])
        // Nor by the token.
        _ = try await register(hub, bensPhone, token: "victim")
        #expect(try await devices(hub, "u1").map(\.token) == ["victim"])
    }

    @Test(
        "ids that others can guess are refused before any game",
        arguments: [
            "phone", "unnamed-android-0123456789abcdef", "client:0123456789abcdefghijklmnop", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "0123456789abcdefghijk",
        ])
    func guessable(client: String) async throws {
        let hub = try Hub()
        let answer = try await register(hub, client)
        #expect(answer.status == 400 && answer.error.contains("at least 22 characters"))
        #expect(
            try await register(hub, client + "-0123456789-vwxyz-0123").status
                == (client.hasPrefix("unnamed") || client.hasPrefix("client:") ? 400 : 200))
    }

    @Test("a join recognises by a device only who proves to have its secret", arguments: ["unnamed-android", "phone", ""])
    func borrowedNames(id: String) async throws {
        let hub = try Hub()
        try await hub.makeSession("d1", definition: "duel")
        let body: [String: JSONValue] = ["device_token": "b", "device_platform": "android"]
        let bob = try await hub.join(body.merging(id.isEmpty ? [:] : ["device_id": .string(id)]) { $1 }, email: "bob@example.com")
        #expect(bob.status == 200)
        let eve = try await hub.join(["email": .null], headers: ["x-client-id": id.isEmpty ? "unnamed-android" : id])
        #expect(eve.status == 200 && eve["id"] != bob["id"] && eve["email"] == .null && !eve.json.text.contains("bob@example.com"))
        #expect(try await devices(hub, "1").map(\.token) == ["b"])
        #expect(try await devices(hub, try #require(eve["user_id"]?.stringValue)).isEmpty)
    }

    @Test("no stored e-mail comes back, and no secret id is in tokens and listings")
    func echoes() async throws {
        let hub = try Hub()
        try await hub.makeSession("d1", definition: "duel")
        _ = try await hub.join(["device_token": "t"], email: "ada@example.com", headers: ["x-client-id": adasPhone])
        let again = try await hub.join(["email": .null, "name": "Ada L."], headers: ["x-client-id": adasPhone])
        #expect(again["email"] == .null && again["name"] == "Ada L." && again["id"] == 1)
        let token = try #require(again["token"]?.stringValue)
        let claims = try ParticipantToken.verify(token, apps: hub.apps, nowSeconds: hub.clock.wallSeconds).claims
        #expect(claims.device == adasHandle)
        let listing = try await hub.call("GET", "users/1/devices")
        #expect(listing.json.text.contains(adasHandle) && !listing.json.text.contains(adasPhone))
        #expect(try await hub.call("GET", "users/1/devices/\(adasHandle)").status == 200)
        let own = try await hub.send("PUT", "/me/device", ["token": "t2"], token: token)
        #expect(own["device"] == .string(adasHandle) && !own.json.text.contains(adasPhone))
    }

    @Test("an e-mail of somebody whom the backend made is no way in, and the answer names the one there is")
    func invitedEmail() async throws {
        let hub = try Hub()
        try await hub.makeSession("open", code: "OPEN42")
        try await hub.makeSession("vip", code: "VIP777")
        for session in ["open", "vip"] {
            _ = try await hub.call(
                "PUT", "sessions/\(session)/participants/u9", ["name": "Nina", "email": "nina@example.com", "role": "host"])
        }
        let eve = try await hub.join(code: "OPEN42", email: "NINA@example.com")
        #expect(eve.status == 403 && eve.error.contains("POST /apps/{app}/sessions/{session}/participants/{user}/token"))
        #expect(eve["token"] == nil && !eve.json.text.contains("Nina"))
        #expect(try await hub.directory.participant(app: "1", session: "open", user: "u9")?.name == "Nina")
        #expect(try await hub.directory.participants(app: "1", session: "open").count == 1)
    }

    @Test("somebody who joined and got a role by the backend joins again as the same person")
    func roleThenRejoin() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let first = try await hub.join()
        _ = try await hub.call("PUT", "sessions/s1/participants/1", ["name": "Ann", "email": "ann@example.com", "role": "host"])
        let again = try await hub.join(["name": "Annie"])
        #expect(again.status == 200 && again["id"] == first["id"])
        #expect(try await hub.directory.participant(app: "1", session: "s1", user: "1")?.role == "host")
    }

    @Test("a token of a join reaches a person whom a join made, and no longer once they stand in another session")
    func joinTokenReach() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        try await hub.makeSession("vip", code: "VIP777")
        let token = try await hub.token()
        func statuses(_ token: String) async throws -> [Int] {
            [
                try await hub.send("GET", "/me/events", token: token).status,
                try await hub.send("POST", "/pusher/user-auth", form: "socket_id=1.2", token: token).status,
                try await hub.send("POST", "/pusher/auth", form: "socket_id=1.2&channel_name=presence-quiz-s1", token: token).status,
                try await hub.send("PUT", "/me/state", ["state": "background"], token: token).status,
            ]
        }
        #expect(try await statuses(token) == [200, 200, 200, 200])
        _ = try await hub.call("PUT", "sessions/vip/participants/1", ["name": "Ann"])
        #expect(try await statuses(token) == [403, 403, 200, 200])
        let refusal = try await hub.send("GET", "/me/events", token: token)
        #expect(refusal.error.contains("scope app") && refusal.error.contains("/token"))
        // The backend's word reaches further.
        let given = try await hub.call("POST", "sessions/s1/participants/1/token", ["scope": "app"])
        #expect(try await statuses(try #require(given["token"]?.stringValue)) == [200, 200, 200, 200])
    }

    @Test("receipts of a join's token count for its session's events only, once the person stands in another one")
    func receiptReach() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        try await hub.makeSession("vip", code: "VIP777")
        let token = try await hub.token()
        _ = try await hub.call("PUT", "sessions/vip/participants/1", ["name": "Ann"])
        let (own, secret) = ("01890000-0000-7000-8000-000000000001", "01890000-0000-7000-8000-000000000002")
        try await hub.events.commit(own, to: ["1"])
        try await hub.events.commit(secret, to: ["1"], channel: "presence-quiz-vip")
        func confirm(_ event: String) async throws -> Int {
            try await hub.send("POST", "/me/receipts", ["event_id": .string(event), "status": "received"], token: token).status
        }
        #expect(try await confirm(own) == 200)
        #expect(try await confirm(secret) == 404)
    }

    @Test("the backend gives an invited person a token for the session, or for the app")
    func backendToken() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        _ = try await hub.call("PUT", "sessions/s1/participants/u9", ["name": "Nina", "email": "nina@example.com"])
        let answer = try await hub.call("POST", "sessions/s1/participants/u9/token", ["device": "phone"])
        #expect(answer.status == 200 && answer["expires_at"] == "2026-01-10T01:00:00.000Z", "\(answer.error)")
        let token = try #require(answer["token"]?.stringValue)
        #expect(try await hub.send("POST", "/pusher/auth", form: "socket_id=1.2&channel_name=presence-quiz-s1", token: token).status == 200)
        #expect(try await hub.send("PUT", "/me/device", ["token": .string(fcmToken)], token: token).status == 200)
        #expect(try await devices(hub, "u9").map(\.id) == ["phone"])
        #expect(try await hub.send("GET", "/me/events", token: token).status == 403)
        let wide = try #require(try await hub.call("POST", "sessions/s1/participants/u9/token", ["scope": "app"])["token"]?.stringValue)
        #expect(try await hub.send("GET", "/me/events", token: wide).status == 200)
        #expect(try await hub.call("POST", "sessions/s1/participants/u9/token").status == 200)
        #expect(try await hub.call("POST", "sessions/s1/participants/nobody/token").status == 404)
        #expect(try await hub.call("POST", "sessions/s1/participants/u9/token", ["scope": "join"]).status == 400)
        #expect(try await hub.call("GET", "sessions/s1/participants/u9/token").status == 405)
    }

    @Test("tokens die with the participant, also when one of the same name is made again")
    func tokensDie() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        _ = try await hub.call("PUT", "sessions/s1/participants/u9", ["name": "Nina"])
        let token = try #require(try await hub.call("POST", "sessions/s1/participants/u9/token", ["scope": "app"])["token"]?.stringValue)
        _ = try await hub.call("DELETE", "sessions/s1/participants/u9")
        _ = try await hub.call("PUT", "sessions/s1/participants/u9", ["name": "Nina"])
        #expect(try await hub.send("GET", "/me/events", token: token).status == 401)
    }

    @Test("join codes are an app's own, and the app is named by its key or by the order of the configuration")
    func codesOfApps() async throws {
        let hub = try Hub()
        try await hub.makeSession("a", code: "SAME42")
        try await hub.makeSession("b", code: "SAME42", app: "2")
        try await hub.makeSession("c", code: "ONLY77", app: "2")
        func channel(_ answer: Answer) -> JSONValue? { answer["channel"] }
        #expect(channel(try await hub.join(code: "SAME42")) == "presence-quiz-a")
        #expect(channel(try await hub.join(["app_key": "other-key"], code: "SAME42")) == "presence-quiz-b")
        let body: JSONValue = ["name": "Ann", "email": "a@example.com", "join_code": "SAME42"]
        #expect(channel(try await hub.send("POST", "/games/join", body, query: ["app_key": "other-key"])) == "presence-quiz-b")
        #expect(channel(try await hub.join(code: "ONLY77")) == "presence-quiz-c")
        #expect(try await hub.join(["app_key": "alpha-key"], code: "ONLY77").status == 404)
        #expect(try await hub.join(["app_key": "nobody's"], code: "SAME42").status == 400)
    }

    @Test("a session takes as many people as its definition says, and whoever is known gets in all the same")
    func fullSession() async throws {
        let text = Hub.quizFile.replacing("roles:", with: "members_max: 2\nroles:")
        let hub = try Hub(files: [("channels/quiz.yaml", text)])
        try await hub.makeSession()
        for name in ["a", "b"] { #expect(try await hub.join(email: "\(name)@example.com").status == 200) }
        let third = try await hub.join(email: "c@example.com")
        #expect(third.status == 403 && third.error.contains("members_max"))
        #expect(try await hub.join(email: "a@example.com").status == 200)
        #expect(try await hub.call("PUT", "sessions/s1/participants/u9", ["name": "Host"]).status == 200)
    }

    @Test("one app's registration of a token leaves the other app's alone")
    func tokensOfApps() async throws {
        let hub = try Hub()
        _ = try await hub.call("PUT", "users/u1/devices/phone", ["token": "shared", "platform": "android"])
        #expect(try await register(hub, adasPhone, token: "shared", key: "other-key").status == 200)
        _ = try await hub.call("PUT", "users/x/devices/phone", ["token": "shared", "platform": "android"], app: "2")
        #expect(try await devices(hub, "u1").map(\.token) == ["shared"])
    }

    @Test("one phone in two sessions hears of both; in one session it is the last one's")
    func onePhone() async throws {
        let hub = try Hub()
        try await hub.makeSession("a", code: "AAA111")
        try await hub.makeSession("b", code: "BBB222")
        let phone: [String: JSONValue] = ["device_token": "one", "device_platform": "android"]
        for code in ["AAA111", "BBB222"] {
            #expect(try await hub.join(phone, code: code, headers: ["x-client-id": adasPhone]).status == 200)
        }
        for session in ["a", "b"] {
            #expect(try await hub.directory.roster(app: "1", session: session).flatMap(\.devices).map(\.token) == ["one"])
        }
        _ = try await hub.join(phone, code: "AAA111", email: "ben@example.com", headers: ["x-client-id": adasPhone])
        let roster = try await hub.directory.roster(app: "1", session: "a")
        #expect(roster.filter { $0.devices.contains { $0.token == "one" } }.map(\.participant.email) == ["ben@example.com"])
    }

    @Test("the token that a phone told once comes along into the next session under the same secret id")
    func adopted() async throws {
        let hub = try Hub()
        try await hub.makeSession("a", code: "AAA111")
        try await hub.makeSession("b", code: "BBB222")
        _ = try await hub.join(["device_token": "one", "device_platform": "android"], code: "AAA111", headers: ["x-client-id": adasPhone])
        _ = try await hub.join(code: "BBB222", headers: ["x-client-id": adasPhone])
        for user in ["1", "2"] { #expect(try await devices(hub, user).map(\.token) == ["one"]) }
        // An id that others can guess brings nothing along.
        _ = try await hub.join(["device_token": "two"], code: "AAA111", email: "c@example.com", headers: ["x-client-id": "phone"])
        let eve = try await hub.join(code: "BBB222", email: "eve@example.com", headers: ["x-client-id": "phone"])
        #expect(try await devices(hub, try #require(eve["user_id"]?.stringValue)).isEmpty)
    }

    @Test("a row that the backend wrote is not found by an id, secret or not")
    func rowsOfTheBackend() async throws {
        let hub = try Hub()
        try await hub.makeSession("d1", definition: "duel")
        _ = try await hub.call("PUT", "users/u1/devices/\(adasPhone)", ["token": "victim", "platform": "android"])
        _ = try await hub.call("PUT", "users/u2/devices/\(adasHandle)", ["token": "second", "platform": "android"])
        let eve = try await hub.join(headers: ["x-client-id": adasPhone])
        #expect(try await devices(hub, try #require(eve["user_id"]?.stringValue)).isEmpty)
        #expect(try await devices(hub, "u1").map(\.token) == ["victim"])
        #expect(try await devices(hub, "u2").map(\.token) == ["second"])
    }
}
