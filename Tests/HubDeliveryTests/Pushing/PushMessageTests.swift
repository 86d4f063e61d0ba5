import HubCore
import HubDelivery
import Testing

@Suite("PushMessage")
struct PushMessageTests {
    private let message = PushMessage(
        nid: "n1", event: "e1", kind: .alert, title: "Hello", body: nil, data: ["a": 1], expiresAt: 2_000, committedAt: 1_000)

    @Test("a changed copy leaves the message it was copied from as it was")
    func copies() {
        var copy = message
        copy.title = "Bye"
        copy.data["b"] = 2
        copy.expiresAt += 5
        #expect(message.title == "Hello" && message.data == ["a": 1] && message.expiresAt == 2_000)
        #expect(copy.title == "Bye" && copy.data == ["a": 1, "b": 2] && copy.expiresAt == 2_005)
        #expect(copy != message && !copy.isSameText(as: message))
    }

    @Test("messages that differ in their ids have the same text, however they were made")
    func sameText() {
        var copy = message
        copy.nid = "n2"
        let made = PushMessage(
            nid: "n2", event: "e1", kind: .alert, title: "Hello", body: nil, data: ["a": 1], expiresAt: 2_000, committedAt: 1_000)
        #expect(copy == made && copy != message)
        #expect(copy.isSameText(as: message) && made.isSameText(as: message))
        copy.sequence = 7
        #expect(copy != made && !copy.isSameText(as: message))
    }
}
