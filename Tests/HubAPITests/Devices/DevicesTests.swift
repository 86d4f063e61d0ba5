import HubCore
import HubDelivery
import Testing

@testable import HubAPI

@Suite("Devices over the signed API")
struct DevicesTests {
    private let path = "users/ann/devices/phone"

    @Test("PUT registers, GET and the list show it without its token, DELETE forgets it")
    func life() async throws {
        let hub = try Hub()
        let put = try await hub.call(
            "PUT", path, ["token": .string(fcmToken), "platform": "android", "locale": "de-CH", "notifications": true, "extra": 1])
        let shape: JSONValue = [
            "user": "ann", "device": "phone", "platform": "android", "provider": "fcm", "environment": "production", "locale": "de-CH",
            "notifications": true, "has_token": true, "form": "token", "timezone": .null, "app_version": .null,
            "registered_at": "2026-01-09T01:00:00.250Z", "refreshed_at": "2026-01-09T01:00:00.250Z", "last_accepted_at": .null,
        ]
        #expect(put.status == 200 && put.json == shape)
        #expect(try await hub.call("GET", path).json == shape)
        #expect(try await hub.call("GET", "users/ann/devices").json == ["devices": [shape]])
        #expect(try await hub.directory.device(app: "1", user: "ann", id: "phone")?.token == fcmToken)
        #expect(try await hub.call("DELETE", path).json == [:])
        #expect(try await hub.call("GET", path).status == 404)
        #expect(try await hub.call("PATCH", path, ["locale": "en"]).status == 404)
        #expect(try await hub.call("DELETE", path).status == 200)
        #expect(try await hub.call("GET", "users/ann/devices").json == ["devices": []])
    }

    @Test(
        "the gateway follows from platform and token unless it is named",
        arguments: [
            ("android", hexToken, nil, "fcm"), ("web", fcmToken, nil, "fcm"), ("ios", hexToken, nil, "apns"), ("ios", fcmToken, nil, "fcm"),
            ("ios", hexToken, "fcm", "fcm"), ("ios", "abcd", nil, "fcm"), ("ios", "abcd", "apns", "apns"),
            ("ios", String(repeating: "a", count: 201), nil, "fcm"), ("ios", String(repeating: "a", count: 65), nil, "fcm"),
            ("ios", String(repeating: "a", count: 200), nil, "apns"), ("ios", String(repeating: "a", count: 202), nil, "fcm"),
            ("ios", String(repeating: "a", count: 62), nil, "fcm"),
        ] as [(String, String, String?, String)])
    func inference(platform: String, token: String, provider: String?, expected: String) async throws {
        let hub = try Hub()
        var body: [String: JSONValue] = ["token": .string(token), "platform": .string(platform)]
        body["provider"] = provider.map(JSONValue.string)
        #expect(try await hub.call("PUT", path, .object(body))["provider"] == .string(expected))
    }

    @Test("APNs tokens are stored in lower case, FCM tokens as they came")
    func spelling() async throws {
        let hub = try Hub()
        _ = try await hub.call("PUT", path, ["token": .string(hexToken), "platform": "ios"])
        #expect(try await hub.directory.device(app: "1", user: "ann", id: "phone")?.token == hexToken.lowercased())
        _ = try await hub.call("PUT", path, ["token": "AbC", "platform": "ios"])
        #expect(try await hub.directory.device(app: "1", user: "ann", id: "phone")?.token == "AbC")
    }

    @Test("the environment is the given one, or the configured one")
    func environment() async throws {
        let hub = try Hub(environment: .sandbox)
        let body: [String: JSONValue] = ["token": .string(hexToken), "platform": "ios"]
        #expect(try await hub.call("PUT", path, .object(body))["environment"] == "sandbox")
        #expect(try await hub.call("PUT", path, .object(body.merging(["environment": "production"]) { $1 }))["environment"] == "production")
    }

    @Test(
        "a registration that cannot be is refused and never repeats the token",
        arguments: [
            (["platform": "ios"], "token is missing"), (["token": "SECRETTOKEN"], "platform is missing"),
            (["token": "SECRETTOKEN", "platform": "windows"], "\"android\" or \"ios\" or \"web\""),
            (["token": "SECRETTOKEN", "platform": "ios", "provider": "apns"], "hexadecimal"),
            (["token": "abc", "platform": "ios", "provider": "apns"], "hexadecimal"),
            (["token": .string(hexToken), "platform": "android", "provider": "apns"], "platform ios"),
            (["token": "SECRETTOKEN", "platform": "ios", "environment": "staging"], "\"production\" or \"sandbox\""),
            (["token": "SECRET TOKEN", "platform": "ios"], "not a device token"), (["token": "", "platform": "ios"], "not a device token"),
            (["token": 12, "platform": "ios"], "token must be a string"),
            (["token": .string(String(repeating: "S", count: 4097)), "platform": "ios"], "token is too long"),
            (["token": "SECRETTOKEN", "platform": "ios", "notifications": "yes"], "notifications must be true or false"),
            (["token": "SECRETTOKEN", "platform": "ios", "locale": "d e"], "locale"),
            (["token": "SECRETTOKEN", "platform": "ios", "locale": .string(String(repeating: "d", count: 36))], "locale"),
        ] as [(JSONValue, String)])
    func refusals(body: JSONValue, mentions: String) async throws {
        let hub = try Hub()
        let answer = try await hub.call("PUT", path, body)
        #expect(answer.status == 400 && answer.error.contains(mentions), "\(answer.error)")
        #expect(!answer.error.contains("SECRET") && !answer.error.contains("SSSS"))
        #expect(try await hub.directory.devices(app: "1", user: "ann").isEmpty)
    }

    @Test("the longest token is taken")
    func longestToken() async throws {
        let token = JSONValue.string(String(repeating: "S", count: 4096))
        #expect(try await Hub().call("PUT", path, ["token": token, "platform": "web"]).status == 200)
    }

    @Test("who wants no notifications need not have a token")
    func withoutConsent() async throws {
        let answer = try await Hub().call("PUT", path, ["token": .null, "platform": "ios", "notifications": false])
        #expect(answer.status == 200 && answer["has_token"] == false && answer["notifications"] == false)
    }

    @Test("PUT gives members that are absent their defaults; PATCH leaves them alone")
    func patch() async throws {
        let hub = try Hub()
        _ = try await hub.call(
            "PUT", path,
            ["token": .string(hexToken), "platform": "ios", "environment": "sandbox", "locale": "de", "notifications": false])
        let patched = try await hub.call("PATCH", path, ["notifications": true])
        #expect(patched["notifications"] == true && patched["locale"] == "de" && patched["environment"] == "sandbox")
        #expect(patched["has_token"] == true && patched["provider"] == "apns")
        #expect(try await hub.call("PATCH", path, ["locale": .null])["locale"] == .null)
        #expect(try await hub.directory.device(app: "1", user: "ann", id: "phone")?.token == hexToken.lowercased())

        // The app went over to Firebase: the new token says so by itself.
        #expect(try await hub.call("PATCH", path, ["token": .string(fcmToken)])["provider"] == "fcm")
        #expect(try await hub.call("PATCH", path, ["provider": "apns"]).status == 400)
        #expect(try await hub.call("PATCH", path, ["token": .string(hexToken)])["provider"] == "apns")
        #expect(try await hub.call("PATCH", path, ["token": .null])["has_token"] == false)

        let put = try await hub.call("PUT", path, ["token": .string(hexToken), "platform": "ios"])
        #expect(put["environment"] == "production" && put["notifications"] == true)
    }

    @Test("a device moved to another platform leaves APNs")
    func platformChange() async throws {
        let hub = try Hub()
        _ = try await hub.call("PUT", path, ["token": .string(hexToken), "platform": "ios"])
        #expect(try await hub.call("PATCH", path, ["platform": "android"])["provider"] == "fcm")
    }

    @Test("ids of users and devices are bounded")
    func ids() async throws {
        let hub = try Hub()
        let long = String(repeating: "d", count: 129)
        #expect(try await hub.call("GET", "users/\(long)/devices").status == 400)
        #expect(try await hub.call("GET", "users/\(long)/devices/d").status == 400)
        #expect(try await hub.call("GET", "users/u/devices/\(long)").status == 400)
    }

    @Test("beyond fifty devices the longest registered one makes room")
    func bound() async throws {
        let hub = try Hub()
        for index in 0..<DeviceRegistry.devicesPerUserMax {
            _ = try await hub.call("PUT", "users/ann/devices/d\(index)", ["token": .string("t\(index)"), "platform": "web"])
            hub.clock.advance(seconds: 1)
        }
        // Known devices need no room.
        _ = try await hub.call("PUT", "users/ann/devices/d0", ["token": "t0", "platform": "web"])
        #expect(try await hub.directory.devices(app: "1", user: "ann").count == 50)
        _ = try await hub.call("PUT", "users/ann/devices/new", ["token": "tn", "platform": "web"])
        let ids = try await hub.directory.devices(app: "1", user: "ann").map(\.id)
        #expect(ids.count == 50 && !ids.contains("d0") && ids.contains("d1") && ids.contains("new"))
    }
}
