import HubCore
import HubDefinitions
import HubDelivery
import Testing

@testable import HubPush

@Suite("SplicedPayloads")
struct SplicedPayloadsTests {
    private let payloads = SplicedPayloads()

    private func numbered(_ number: Int, _ original: PushMessage) -> PushMessage {
        var message = original
        message.nid = "4d0a6f6e-8e6c-4a1b-9a53-00000000000\(number)"
        return message
    }

    @Test("what APNs gets is what it would get if every payload were written by itself", arguments: [PushKind.alert, .silent])
    func apns(kind: PushKind) throws {
        let original = message(kind: kind, data: ["game_id": 7, "empty": ""], apns: ["sound": "default"], group: "g.q17")
        for number in 1...3 {
            let message = numbered(number, original)
            let spliced = try payloads.apns(message, topic: "com.example.app", device: "d\(number)", now: now)
            let direct = try APNsPayload(message, topic: "com.example.app", device: "d\(number)", now: now)
            #expect(spliced.headers == direct.headers)
            #expect(try json(spliced.body) == json(direct.body))
            #expect(spliced.body.count == direct.body.count)
        }
    }

    @Test("what FCM gets is what it would get if every payload were written by itself", arguments: [DevicePlatform.android, .ios, .web])
    func fcm(platform: DevicePlatform) throws {
        let original = message(data: ["game_id": 7], android: ["channel_id": "game"], group: "g.q17")
        for number in 1...3 {
            let message = numbered(number, original)
            let target = target(platform: platform, token: "abc\(number):APA91b-_\(number)", device: "d\(number)")
            let spliced = try payloads.fcm(message, target: target, now: now + Int64(number) * 700)
            let direct = try FCMPayload(message, target: target, now: now + Int64(number) * 700)
            #expect(try json(spliced.body) == json(direct.body))
            #expect(spliced.body.count == direct.body.count)
        }
    }

    @Test("another text, another target or another second is another payload")
    func others() throws {
        let first = try payloads.fcm(message(body: "One"), target: target(), now: now)
        let other = try payloads.fcm(message(body: "Two"), target: target(), now: now)
        let later = try payloads.fcm(message(body: "One"), target: target(), now: now + 1000)
        let topic = try payloads.fcm(message(body: "One"), target: target(platform: .ios), now: now)
        #expect(Set([first.body, other.body, later.body, topic.body]).count == 4)
        #expect(try json(later.body) == json(FCMPayload(message(body: "One"), target: target(), now: now + 1000).body))
    }

    @Test("a token that JSON has to escape, and an id of another length, are written as they should be")
    func unusual() throws {
        let quoted = target(token: "a\"b\\c/d")
        #expect(try json(payloads.fcm(message(), target: quoted, now: now).body).at("message", "token") == "a\"b\\c/d")
        var short = message()
        short.nid = "n\"1"
        #expect(try json(payloads.fcm(short, target: target(), now: now).body).at("message", "data", "nid") == "n\"1")
    }

    @Test("what cannot be written is refused every time, and what has expired is not sent from memory")
    func refusals() throws {
        let reserved = message(data: ["from": "x"])
        for _ in 0..<2 { #expect(throws: PayloadFault.self) { try payloads.fcm(reserved, target: target(), now: now) } }
        _ = try payloads.apns(message(life: 1), topic: "t", device: "d", now: now)
        #expect(throws: PayloadFault.self) { try payloads.apns(message(life: 1), topic: "t", device: "d", now: now + 1000) }
    }
}
