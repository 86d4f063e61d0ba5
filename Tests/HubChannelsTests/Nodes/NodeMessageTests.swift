import HubCore
import PusherProtocol
import Testing

@testable import HubChannels

@Suite("Messages between nodes") struct NodeMessageTests {
    private let messages: [NodeMessage] = [
        .event(
            NodeMessage.Event(
                app: "1", name: "news \u{1F600}", channels: [ChannelName("a")!, ChannelName("private-b")!],
                data: DataLiteral(content: "{\"x\":\"\u{0}\"}"), excluded: SocketID(first: 1, second: 2))),
        .event(
            NodeMessage.Event(
                app: "1", name: "client-x", channels: [ChannelName("presence-b")!], data: DataLiteral(content: ""), excluded: nil, user: "",
                isClients: true)),
        .terminate(app: "1", user: "ann", ticket: .max),
        .done(node: 7, ticket: 0),
    ]

    @Test("arrive as they were sent")
    func roundTrip() {
        for message in messages { #expect(NodeMessage(message.bytes) == message) }
    }

    @Test("a message that is cut off anywhere is no message")
    func cutOff() {
        for message in messages {
            let bytes = message.bytes
            for count in bytes.indices { #expect(NodeMessage(Array(bytes[..<count])) == nil) }
        }
    }

    @Test("a later version and an unknown kind are no messages, and further fields are ignored")
    func versions() {
        let bytes = messages[2].bytes
        #expect(NodeMessage([2] + bytes.dropFirst()) == nil)
        #expect(NodeMessage([1, 200] + bytes.dropFirst(2)) == nil)
        #expect(NodeMessage(bytes + [0, 0, 0, 1, 9]) == messages[2])
    }
}
