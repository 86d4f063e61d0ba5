import HubCore
import HubDelivery
import Testing

@testable import HubAPI

@Suite("Many devices in one request, and what an app tells of its device")
struct BulkDevicesTests {
    @Test("each registration has an outcome of its own, in order; what is refused keeps no other from being done")
    func outcomes() async throws {
        let hub = try Hub()
        _ = try await hub.call("PUT", "users/old/devices/d", ["token": "t-old", "platform": "web", "locale": "de"])
        let answer = try await hub.call(
            "POST", "devices",
            [
                "devices": [
                    ["user": "ann", "device": "phone", "token": .string(fcmToken), "platform": "android", "timezone": "Europe/Zurich"],
                    ["user": "bob", "device": "phone", "token": .string(hexToken)], ["user": "eve", "device": "phone"],
                    ["user": "old", "device": "d", "token": "t-new"], ["device": "phone", "token": "t"], "no object",
                    ["user": "eve", "device": "pad", "fid": "dXJ0_fid-1", "platform": "ios"],
                    ["user": "ann", "device": "gone", "delete": true],
                ]
            ])
        #expect(answer.status == 200)
        let outcomes = answer["devices"]?.arrayValue ?? []
        #expect(outcomes.map { $0["status"]?.intValue } == [200, 200, 400, 200, 400, 400, 200, 200])
        #expect(outcomes[1] == ["status": 200, "user": "bob", "device": "phone", "provider": "apns"])
        #expect(outcomes[2]["error"]?.stringValue?.contains("token is missing") == true)
        #expect(outcomes[4]["error"]?.stringValue?.contains("user is missing") == true)
        let old = try await hub.directory.device(app: "1", user: "old", id: "d")
        #expect(old?.token == "t-new" && old?.locale == "de" && old?.platform == .web, "a token is changed alone")
        #expect(try await hub.directory.device(app: "1", user: "eve", id: "pad")?.form == .fid)
    }

    @Test("elements about one device follow each other")
    func order() async throws {
        let hub = try Hub()
        let answer = try await hub.call(
            "POST", "devices",
            [
                "devices": [
                    ["user": "ann", "device": "phone", "token": "t1", "platform": "android", "locale": "de"],
                    ["user": "ann", "device": "phone", "token": "t2"], ["user": "ann", "device": "pad", "token": "t3", "platform": "ios"],
                    ["user": "ann", "device": "pad", "delete": true],
                    ["user": "ann", "device": "pad", "token": "t4"],
                ]
            ])
        #expect(answer["devices"]?.arrayValue?.map { $0["status"]?.intValue } == [200, 200, 200, 200, 200])
        let phone = try await hub.directory.device(app: "1", user: "ann", id: "phone")
        #expect(phone?.token == "t2" && phone?.locale == "de")
        #expect(try await hub.directory.device(app: "1", user: "ann", id: "pad")?.platform == .android, "it was forgotten in between")
    }

    @Test("a request has at most a thousand elements")
    func bounds() async throws {
        let hub = try Hub()
        func items(_ count: Int) -> JSONValue {
            let items = (0..<count).map { JSONValue.object(["user": .string("u\($0)"), "device": "d", "token": .string("t\($0)")]) }
            return ["devices": .array(items)]
        }
        #expect(try await hub.call("POST", "devices", items(1000)).status == 200)
        let refused = try await hub.call("POST", "devices", items(1001))
        #expect(refused.status == 413 && refused.error.contains("1000"))
        #expect(try await hub.call("POST", "devices", [:]).status == 400)
        #expect(try await hub.call("POST", "devices", ["devices": [:]]).status == 400)
        #expect(try await hub.call("POST", "devices", ["devices": []]).json == ["devices": []])
        #expect(try await hub.call("GET", "devices").status == 405)
        #expect(try await hub.directory.device(app: "1", user: "u999", id: "d")?.token == "t999")
    }

    @Test("one installation has a token or a fid, and one replaces the other")
    func fid() async throws {
        let hub = try Hub()
        let path = "users/ann/devices/phone"
        _ = try await hub.call("PUT", path, ["token": .string(hexToken), "platform": "ios"])
        let changed = try await hub.call("PATCH", path, ["fid": "dXJ0_fid-1"])
        #expect(changed["form"] == "fid" && changed["provider"] == "fcm" && changed["has_token"] == true)
        #expect(try await hub.directory.device(app: "1", user: "ann", id: "phone")?.token == "dXJ0_fid-1")
        // A change that does not name the token keeps it.
        #expect(try await hub.call("PATCH", path, ["locale": "de"])["form"] == "fid")
        let back = try await hub.call("PATCH", path, ["token": .string(hexToken)])
        #expect(back["form"] == "token" && back["provider"] == "apns")
        #expect(try await hub.call("PUT", path, ["token": "a", "fid": "b", "platform": "ios"]).status == 400)
        #expect(try await hub.call("PUT", path, ["fid": .string(hexToken), "platform": "ios", "provider": "apns"]).error.contains("fcm"))
        #expect(try await hub.call("PUT", path, ["fid": .string(hexToken), "platform": "ios"])["provider"] == "fcm")
    }

    @Test("time zone and version are kept, and checked")
    func descriptions() async throws {
        let hub = try Hub()
        let path = "users/ann/devices/phone"
        let put = try await hub.call("PUT", path, ["token": "t", "platform": "web", "timezone": "Asia/Kolkata", "app_version": "3.1 (7)"])
        #expect(put["timezone"] == "Asia/Kolkata" && put["app_version"] == "3.1 (7)")
        #expect(try await hub.call("PATCH", path, ["timezone": .null])["timezone"] == .null)
        for zone in ["Mars/Olympus", "", "../etc/passwd", "/etc/localtime", "Europe/Berlin\n"] {
            #expect(try await hub.call("PATCH", path, ["timezone": .string(zone)]).error.contains("IANA"), "\(zone)")
        }
        #expect(try await hub.call("PATCH", path, ["app_version": ""]).status == 400)
        #expect(try await hub.call("PATCH", path, ["app_version": .string(String(repeating: "1", count: 65))]).status == 400)
    }

    @Test("a token that is told again is refreshed, though nothing else changes; other changes do not refresh it")
    func refreshing() async throws {
        let hub = try Hub()
        let path = "users/ann/devices/phone"
        let first = try await hub.call("PUT", path, ["token": "t", "platform": "web"])
        hub.clock.advance(seconds: 60)
        let again = try await hub.call("PUT", path, ["token": "t", "platform": "web"])
        #expect(again["registered_at"] == first["registered_at"] && again["refreshed_at"] == "2026-01-09T01:01:00.250Z")
        hub.clock.advance(seconds: 60)
        #expect(try await hub.call("PATCH", path, ["locale": "de"])["refreshed_at"] == again["refreshed_at"])
        #expect(try await hub.call("PATCH", path, ["token": "t"])["refreshed_at"] == "2026-01-09T01:02:00.250Z")
    }

    @Test("a join tells all of it")
    func join() async throws {
        let hub = try Hub()
        try await hub.makeSession()
        let (token, user) = try await hub.participant([
            "device_fid": "fid-1", "device_platform": "ios", "timezone": "Europe/Berlin", "app_version": "2.0", "locale": "de",
        ])
        let device = try #require(try await hub.directory.devices(app: "1", user: user).first)
        #expect(device.form == .fid && device.token == "fid-1" && device.timezone == "Europe/Berlin" && device.appVersion == "2.0")
        #expect(try await hub.send("PUT", "/me/device", ["token": .string(fcmToken)], token: token)["form"] == "token")
        #expect(try await hub.send("DELETE", "/me/device", token: token).status == 200)
        #expect(try await hub.directory.devices(app: "1", user: user).isEmpty)
    }
}
