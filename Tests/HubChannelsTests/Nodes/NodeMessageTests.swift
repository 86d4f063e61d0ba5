import HubCore
import HubTesting
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
        .done(node: 7, ticket: 0), .delivery([1, 2, 3]), .cacheMiss(app: "1", channel: ChannelName("cache-c")!),
    ]
    private let nextBuild = MessageVersions(1, 2)

    @Test("arrive as they were sent")
    func roundTrip() {
        for message in messages { #expect(NodeMessage(message.bytes(1), .known) == message) }
    }

    @Test("a message that is cut off anywhere is no message")
    func cutOff() {
        for message in messages {
            // The end of a word of delivery is that of the message.
            if case .delivery = message { continue }
            let bytes = message.bytes(1)
            for count in bytes.indices { #expect(NodeMessage(Array(bytes[..<count]), .known) == nil) }
        }
    }

    @Test("a version that is not read and an unknown kind are no messages, and further fields are ignored")
    func versions() {
        let bytes = messages[2].bytes(1)
        for version: UInt8 in [0, 2, 255] { #expect(NodeMessage([version] + bytes.dropFirst(), .known) == nil) }
        #expect(NodeMessage([1, 200] + bytes.dropFirst(2), .known) == nil)
        #expect(NodeMessage(bytes + [0, 0, 0, 1, 9], .known) == messages[2])
    }

    @Test("the next build reads what this one writes, and this one what the next one writes for it")
    func nextBuilds() {
        for message in messages {
            #expect(NodeMessage(message.bytes(1), nextBuild) == message && NodeMessage(message.bytes(2), nextBuild) == message)
            #expect(NodeMessage(message.bytes(2), .known) == nil)
        }
    }

    /// Version 1. The builds of a rolling upgrade read these bytes of each other: a change of them needs a new version.
    private let frozen: [FrozenBytes] = [
        """
        01010000000131000000096e65777320f09f9880000000080000000000000002000000016100000009707269766174652d62
        00000014227b5c22785c223a5c225c75303030305c227d2200000008000000000000000900000003312e3200000008000000
        000000000000000000000000080000000000000000
        """,
        """
        0101000000013100000008636c69656e742d780000000800000000000000010000000a70726573656e63652d620000000222
        220000000800000000000000000000000000000008000000000000000100000000000000080000000000000001
        """,
        "0102000000013100000003616e6e00000008ffffffffffffffff",
        "0103000000080000000000000007000000080000000000000000",
        "0104010203",
        "010500000001310000000763616368652d63",
    ]

    @Test("are these bytes in every build that knows version 1")
    func format() {
        #expect(MessageVersions.known.contains(1) && frozen.count == messages.count)
        for (message, bytes) in zip(messages, frozen) {
            #expect(FrozenBytes(message.bytes(1)) == bytes)
            #expect(NodeMessage(bytes.bytes, .known) == message)
        }
    }

    @Test("a socket id of another node is found by that node, whatever build it is")
    func socketIDs() {
        let connection = ConnectionID(loop: 3, slot: 70_000, generation: 9)
        #expect(ProcessTag(random: 5, 6).socketID(of: connection).description == "7922354990682480.6271970807119881")
    }
}
