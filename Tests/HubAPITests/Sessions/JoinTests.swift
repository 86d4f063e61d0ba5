import HubCore
import HubDefinitions
import HubDelivery
import Testing

@testable import HubAPI

@Suite("Joining by code")
struct JoinTests {
    @Test("the answer has exactly the guide's members and ours, with or without a device token")
    func shape() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let first = try await hub.join()
        #expect(first.status == 200)
        let members = try #require(first.json.objectValue)
        var rest = members
        rest["token"] = nil
        #expect(
            rest == [
                "id": 1, "session_id": 1, "name": "Ann", "email": "ann@example.com", "joined_at": "2026-01-09T01:00:00.250Z",
                "user_id": "1", "channel": "presence-quiz-s1",
            ])
        let token = try #require(members["token"]?.stringValue)
        let (claims, app) = try ParticipantToken.verify(token, apps: hub.apps, nowSeconds: hub.clock.wallSeconds)
        let now = hub.clock.wallSeconds
        #expect(app.id == "1")
        #expect(
            claims
                == ParticipantClaims(
                    app: "1", session: "s1", user: "1", device: claims.device, scope: .join, number: 1, issuedAt: now,
                    expiresAt: now + 86_400))
        #expect(claims.device.hasPrefix("unnamed-") && claims.device.count == 24)

        let second = try await hub.join(["device_token": .string(fcmToken), "device_platform": "android"])
        var same = try #require(second.json.objectValue)
        #expect(second.status == 200 && same["token"] != members["token"])
        same["token"] = nil
        #expect(same == rest)
        #expect(hub.delivery.calls == [.roster(app: "1", session: "s1", user: "1"), .roster(app: "1", session: "s1", user: "1")])
        #expect(try await hub.directory.participant(app: "1", session: "s1", user: "1")?.role == "player")
    }

    @Test("the same e-mail in other letters is the same participant, under the new name")
    func rejoin() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let first = try await hub.join()
        let second = try await hub.join(["name": "Anna"], code: "abc123", email: " ANN@example.com ")
        #expect(second["id"] == first["id"] && second["name"] == "Anna" && second["email"] == "ANN@example.com")
        #expect(try await hub.join(email: "bob@example.com")["id"] != first["id"])
    }

    @Test("a definition can recognise people by their device instead")
    func deviceIdentity() async throws {
        let hub = try Hub()
        try await hub.makeSession("d1", definition: "duel")
        let first = try await hub.join(["device_id": .string(adasPhone)], email: "a@example.com")
        #expect(try await hub.join(email: "b@example.com", headers: ["x-client-id": adasPhone])["id"] == first["id"])
        // The e-mail is a note beside the name here: who knows it is somebody else, as is a reinstalled app.
        let other = try await hub.join(["device_id": .string(bensPhone)], email: "a@example.com")
        #expect(other.status == 200 && other["id"] != first["id"])
    }

    @Test("the channel of a participant is filled in where each has their own")
    func ownChannel() async throws {
        let hub = try Hub()
        try await hub.makeSession("o1", definition: "orders")
        #expect(try await hub.join()["channel"] == "private-orders-o1-1")
    }

    @Test(
        "what is missing or wrong is named",
        arguments: [
            (["name": .null], "name is missing"), (["email": .null], "email is missing"), (["name": 5], "name must be a string"),
            (["name": "   "], "name is empty"), (["email": "secret.example.com"], "email"), (["email": "secret@x@y"], "email"),
            (["email": .string(String(repeating: "s", count: 250) + "@x.yz")], "email"), (["device_id": 5], "device_id"),
            (["device_id": "a\u{2}"], "device id"), (["device_id": .string(String(repeating: "d", count: 129))], "device_id"),
        ] as [([String: JSONValue], String)])
    func refusals(more: [String: JSONValue], mentions: String) async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let answer = try await hub.join(more)
        #expect(answer.status == 400 && answer.error.contains(mentions), "\(answer.error)")
        #expect(!answer.error.contains("secret"))
        #expect(try await hub.directory.participants(app: "1", session: "s1").isEmpty)
    }

    @Test(
        "a usable device token is stored",
        arguments: [
            (
                ["device_token": .string(fcmToken), "device_platform": "android"], DevicePlatform.android, PushProvider.fcm,
                "unnamed-android-"
            ),
            (["device_token": .string(fcmToken), "device_platform": "ios"], .ios, .fcm, "unnamed-ios-"),
            (["device_token": .string(hexToken), "device_platform": "ios"], .ios, .apns, "unnamed-ios-"),
            (["device_token": .string(hexToken)], .ios, .apns, "unnamed-ios-"),
            (["device_token": .string(fcmToken)], .android, .fcm, "unnamed-android-"),
            (["device_token": "ab", "device_provider": "apns", "device_id": "mine"], .ios, .apns, "mine"),
            (["device_token": .string(hexToken), "device_platform": "ios", "device_provider": "fcm"], .ios, .fcm, "unnamed-ios-"),
        ] as [([String: JSONValue], DevicePlatform, PushProvider, String)])
    func stored(more: [String: JSONValue], platform: DevicePlatform, provider: PushProvider, id: String) async throws {
        let hub = try Hub(environment: .sandbox)
        try await hub.makeSession()
        let token = try await hub.token(more)
        let devices = try await hub.directory.devices(app: "1", user: "1")
        #expect(devices.count == 1)
        #expect(devices.first?.platform == platform && devices.first?.provider == provider && devices.first?.id.hasPrefix(id) == true)
        #expect(devices.first?.environment == .sandbox && devices.first?.notifications == true)
        #expect(try ParticipantToken.verify(token, apps: hub.apps, nowSeconds: hub.clock.wallSeconds).claims.device == devices.first?.id)
    }

    @Test("the token's environment is the app's to say")
    func environment() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        _ = try await hub.join(["device_token": .string(hexToken), "device_token_environment": "sandbox"])
        #expect(try await hub.directory.devices(app: "1", user: "1").first?.environment == .sandbox)
    }

    @Test(
        "a token that cannot be used never fails the join, and an earlier one stays",
        arguments: [
            ["device_token": 5], ["device_token": ""], ["device_token": "a b"],
            ["device_token": .string(String(repeating: "t", count: 5000))],
            ["device_token": "t", "device_platform": "windows"], ["device_token": "nothex", "device_provider": "apns"],
            ["device_token": .string(hexToken), "device_platform": "android", "device_provider": "apns"],
            ["device_token": "t", "device_token_environment": "moon"], ["device_token": .null], ["locale": 5, "device_token": "t"],
        ] as [[String: JSONValue]])
    func unusable(more: [String: JSONValue]) async throws {
        let hub = try Hub()
        try await hub.makeSession()
        _ = try await hub.join(["device_token": .string(fcmToken), "device_id": "phone"])
        let before = try await hub.directory.devices(app: "1", user: "1")
        #expect(try await hub.join(more.merging(["device_id": "phone"]) { $1 }).status == 200)
        #expect(try await hub.directory.devices(app: "1", user: "1") == before)
    }

    @Test("a join without an id adds a device for each token, five at most, and never at the cost of one that works")
    func unnamedDevices() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        func tokens() async throws -> Set<String?> { Set(try await hub.directory.devices(app: "1", user: "1").map(\.token)) }
        _ = try await hub.join(["device_token": "first", "device_platform": "android"])
        try await hub.directory.noteAccepted(token: "first", app: "1", provider: .fcm, environment: .production, at: 1)
        for index in 2...9 {
            hub.clock.advance(seconds: 1)
            _ = try await hub.join(["device_token": .string("token-\(index)"), "device_platform": "android"])
        }
        #expect(try await tokens() == ["first", "token-2", "token-3", "token-4", "token-9"])
        // The gateway's word makes room.
        _ = try await hub.directory.removeToken("first", app: "1", provider: .fcm, deadSince: nil)
        _ = try await hub.join(["device_token": "living", "device_platform": "android"])
        #expect(try await tokens() == ["living", "token-2", "token-3", "token-4", "token-9"])
        for token in ["living", "token-2", "token-3", "token-4", "token-9"] {
            try await hub.directory.noteAccepted(token: token, app: "1", provider: .fcm, environment: .production, at: 2)
        }
        #expect(try await hub.join(["device_token": "invented", "device_platform": "android"]).status == 200)
        #expect(try await tokens() == ["living", "token-2", "token-3", "token-4", "token-9"])
    }

    @Test("the same token without an id is the same device, and consent is kept under another id")
    func consent() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        _ = try await hub.join(["device_token": "t", "device_platform": "android"])
        let id = try #require(try await hub.directory.devices(app: "1", user: "1").first?.id)
        _ = try await hub.call("PATCH", "users/1/devices/\(id)", ["notifications": false])
        _ = try await hub.join(["device_token": "t", "device_platform": "android"])
        #expect(try await hub.directory.devices(app: "1", user: "1").map(\.notifications) == [false])
        // In either spelling of a hexadecimal one.
        for spelling in [hexToken, hexToken.lowercased()] {
            _ = try await hub.join(["device_token": .string(spelling)], email: "b@example.com")
        }
        #expect(try await hub.directory.devices(app: "1", user: "2").count == 1)
        _ = try await hub.join(["device_token": "t"], headers: ["x-client-id": adasPhone])
        #expect(try await hub.directory.devices(app: "1", user: "1").filter { $0.token != nil }.map(\.notifications) == [false])
    }

    @Test("the header names the device before the body does; empty names count as none")
    func deviceIDs() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let more: [String: JSONValue] = ["device_token": "t", "device_id": "body"]
        _ = try await hub.join(more, headers: ["x-client-id": "header"])
        #expect(try await hub.directory.devices(app: "1", user: "1").map(\.id) == ["header"])
        _ = try await hub.join(more, headers: ["x-client-id": ""])
        #expect(try await hub.directory.device(app: "1", user: "1", id: "body")?.token == "t")
        #expect(try await hub.join(headers: ["x-client-id": String(repeating: "h", count: 129)]).status == 400)
    }

    @Test("a platform beside an unusable token still names the device")
    func platformWithoutToken() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        for more in [["device_platform": "ios"], ["device_platform": "ios", "device_token": "a b"]] as [[String: JSONValue]] {
            let token = try await hub.token(more)
            #expect(
                try ParticipantToken.verify(token, apps: hub.apps, nowSeconds: hub.clock.wallSeconds).claims.device.hasPrefix(
                    "unnamed-ios-"))
        }
    }

    @Test("a session that ends during the join is no longer there")
    func endsMeanwhile() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let directory = hub.directory
        hub.directory.afterLookUp { await directory.forgetSessions() }
        let answer = try await hub.join()
        #expect(answer.status == 404 && answer.error.contains("join code"))
    }

    @Test("only POST joins")
    func method() async throws {
        let answer = try await Hub().send("GET", "/api/scenarios/sessions/ABC123/join")
        #expect(answer.status == 405 && answer.headers["Allow"] == "POST")
    }

    @Test("a disabled app lets nobody in")
    func disabled() async throws {
        let hub = try Hub()
        try await hub.makeSession(app: "3")
        #expect(try await hub.join().status == 404)
        #expect(try await hub.join(["app_key": "gamma-key"]).status == 403)
    }

    @Test(
        "after ten wrong codes in a minute the address's joins take turns, right or wrong: ten wait, and one more is refused without a look-up"
    )
    func wrongCodes() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        for index in 0..<10 {
            let code = index == 0 ? "not a code" : "WRONG\(index)"
            let answer = try await hub.join(code: code)
            #expect(answer.status == 404 && !answer.error.isEmpty)
        }
        #expect(hub.pauses.nanoseconds.isEmpty)
        for index in 0..<10 {
            let answer = index % 2 == 0 ? try await hub.join() : try await hub.join(code: "WRONG")
            #expect(answer.status == (index % 2 == 0 ? 200 : 404))
        }
        let seconds: ClosedRange<UInt64> = 1...10
        #expect(hub.pauses.nanoseconds == seconds.map { $0 * 1_000_000_000 })
        let lookUps = hub.directory.lookUps
        for code in ["WRONG", "ABC123"] {
            let refused = try await hub.join(code: code)
            #expect(refused.status == 429 && refused.headers["Retry-After"] == "10")
        }
        #expect(hub.directory.lookUps == lookUps)
        #expect(try await hub.join(from: "192.0.2.2").status == 200)
        hub.clock.advance(seconds: 1)
        #expect(try await hub.join().status == 200)
        hub.clock.advance(seconds: 59)
        #expect(try await hub.join().status == 200)
        #expect(hub.pauses.nanoseconds.count == 11, "the minute is over")
    }

    @Test("a school class of 300 behind one address joins within a minute, and 600 at once; one more waits a moment")
    func schoolClass() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        for number in 0..<600 { #expect(try await hub.join(email: "pupil\(number)@example.com").status == 200) }
        let refused = try await hub.join(email: "one-more@example.com")
        #expect(refused.status == 429 && refused.headers["Retry-After"] == "1" && refused.error.contains("5 in a second"))
        #expect(try await hub.join(from: "192.0.2.2").status == 200)
        for _ in 0..<60 {
            hub.clock.advance(seconds: 1)
            for number in 0..<5 { #expect(try await hub.join(email: "pupil\(number)@example.com").status == 200) }
            #expect(try await hub.join().status == 429)
        }
    }

    @Test("a session takes the joins of ten addresses at their limits, and other sessions go on; 0 takes all limits off")
    func sessionLimit() async throws {
        let hub = try Hub(joinsPerMinute: 3)
        try await hub.makeSession()
        try await hub.makeSession("s2", code: "DEF456")
        for address in 0..<10 {
            for _ in 0..<6 { #expect(try await hub.join(from: "192.0.2.\(address)").status == 200) }
            #expect(try await hub.join(from: "192.0.2.\(address)").error.contains("from this address"))
        }
        let refused = try await hub.join(from: "192.0.2.10")
        #expect(refused.status == 429 && refused.headers["Retry-After"] == "2" && refused.error.contains("joins of this session"))
        #expect(try await hub.join(code: "DEF456", from: "192.0.2.10").status == 200)
        let open = try Hub(joinsPerMinute: 0)
        try await open.makeSession()
        for _ in 0..<1000 { #expect(try await open.join().status == 200) }
    }

    @Test("right codes are not limited, whatever is wrong with the rest")
    func rightCodes() async throws {
        let hub = try Hub(wrongCodes: 1)
        try await hub.makeSession()
        for _ in 0..<20 { #expect(try await hub.join(["name": .null]).status == 400) }
        for _ in 0..<20 { #expect(try await hub.join().status == 200) }
    }

    @Test("codes tried at the same time get no more answers than codes tried in turn")
    func concurrentCodes() async throws {
        let hub = try Hub(wrongCodes: 1)
        try await hub.makeSession()
        let clock = hub.clock
        let gates = JoinGates(Hub.limits(1), time: clock, pause: hub.pauses.note)
        let definitions = try DefinitionSet.load([(file: "quiz.yaml", text: Hub.quizFile)])
        let joining = JoinResource(
            directory: hub.directory, delivery: hub.delivery, apps: hub.apps,
            devices: JoiningDevices(shelf: DeviceRegistry(directory: hub.directory, time: clock, defaultEnvironment: .production)),
            gates: gates,
            time: clock,
            definitions: { definitions })
        let request = HTTPRequest(
            method: "POST", path: "", body: Array(#"{"name":"A","email":"a@b.c"}"#.utf8), remoteAddress: "192.0.2.1")
        // Others of the address are found wrong while this one's right code is looked up.
        hub.directory.afterLookUp { gates.wrongCodes.noteWrong("192.0.2.1") }
        #expect(try await joining.respond(to: request, joinCode: "ABC123").status == 200)
        #expect(hub.pauses.nanoseconds == [1_000_000_000], "it takes a turn before it is told")
    }
}
