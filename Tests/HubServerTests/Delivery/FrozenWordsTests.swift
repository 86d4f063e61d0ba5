import HubDelivery
import HubTesting
import Testing

@testable import HubServer

/// Words of delivery as all builds with version 1 of the messages between nodes write them. A change of these bytes needs a new version:
/// the nodes of a rolling upgrade read them of each other. A new field at the end of a word needs none, and changes the line here.
@Suite("Frozen words of delivery") struct FrozenWordsTests {
    private static let frozen: [FrozenBytes] = [
        "01ffffffffffffffffff01010401",
        """
        02020b018980808080aec48003013109707269766174652d78000100018980808080aec4800301310b70726573656e63652d
        c3a40101750001808080808020028980808080aec48003013109707269766174652d78010175000701010300048980808080
        aec4800300058980808080aec480030000068980808080aec4800301070201ffffffffffffffffff01800108050609898080
        8080aec480030000008980808080aec48003ac02
        """,
        """
        03050131010561736b6564020a70726573656e63652d61016210227b5c22615c223a5c22c3bc5c227d220a0103312e322430
        313862636665352d363830302d373030302d383030302d30303030303030303030303180a0abfef9620101016b
        """,
        "04070800020001010165010000",
        "040708010100019003026e6f",
        """
        0501310a70726573656e63652d610561736b6564032278220101016501020105686964657200010201020203090001040103
        332e34014d
        """,
        "0501310162016e0222220000000000000000",
        "0605020102",
        "0704008980808080aec48003016300",
        "0704008980808080aec4800301630101056869646572",
        "0704018980808080aec48003016309028100",
        "07040201018980808080aec48003",
        "0803",
        "09010203",
        "0a0181808080808080808001",
        "0b0102",
        "0c0000016501310163017501640300",
        "0c0104010131017501640201",
        "0c000203312e3201310175016400",
        "0c01090301310173047175697a020175017601",
        "0c0004013101730175",
        "0d0102",
        "0e0101310163010175",
        "0f010201017502010000",
        "0f01020101750201010001026e31030101640001ac020100020200",
        "100201610162",
        "110301310561736b6564016303227822010103312e32",
        "1201030194030a6e6f2073657373696f6e",
        "120103000163010467616d650108637269746963616c01e0a71202010102020201752101c03e02016401650176020000",
        "1201040001630000000000",
    ]

    @Test("every kind is these bytes, and is read from them")
    func format() throws {
        #expect(Self.frozen.count == NodeMessageTests.messages.count)
        for (message, frozen) in zip(NodeMessageTests.messages, Self.frozen) {
            #expect(FrozenBytes(message.bytes) == frozen, "\(message)")
            #expect(FrozenBytes(try #require(DeliveryMessage(frozen.bytes[...])).bytes) == frozen, "\(message)")
        }
    }

    @Test("an event has one id, whichever build decides about its publish")
    func eventIDs() {
        let id = PublishID(text: "018bcfe5-6800-7000-8000-000000000001", time: 1_700_000_000_000)
        #expect(id.event("presence-a") == "018bcfe5-6800-70af-a061-b7844a9cb1a7")
    }
}
