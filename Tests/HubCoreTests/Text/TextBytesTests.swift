import HubCore
import Testing

@Suite("Texts and numbers as bytes")
struct TextBytesTests {
    @Test("a number is appended as it is written", arguments: [0, 7, 10, 99, 100, 4_503_599_627_370_496, .max] as [UInt64])
    func decimals(number: UInt64) {
        var bytes = Array("n".utf8)
        bytes.append(decimal: number)
        #expect(bytes == Array("n\(number)".utf8))
    }

    @Test("texts are appended whole, short and long ones", arguments: ["", "a", "\u{E9}", String(repeating: "x\"", count: 40)])
    func texts(text: String) {
        var bytes: [UInt8] = []
        bytes.append(literal: "<é")
        bytes.append(text: text)
        #expect(bytes == Array("<é\(text)".utf8))
    }

    @Test("a text begins with another one's bytes")
    func beginnings() {
        let front: StaticString = "/app"
        for text in ["/app", "/apps/1/events/and/more"] { #expect(front.begins(text)) }
        for text in ["/ap", "", "/aPp", "app/"] { #expect(!front.begins(text)) }
    }

    @Test("pieces stand behind each other in their room, and none goes beyond its end")
    func room() async {
        let text = withUnsafeTemporaryAllocation(byteCount: 12, alignment: 1) { bytes in
            var room = ByteRoom(bytes)
            room.write(literal: "a")
            room.write(text: "")
            room.write(text: "bü")
            room.write([1, 2])
            room.write { rest in
                rest[0] = UInt8(rest.count)
                return 1
            }
            room.write(text: "lange")
            return Array(bytes[..<room.count])
        }
        #expect(text == Array("abü".utf8) + [1, 2, 6] + Array("lange".utf8))
        await #expect(processExitsWith: .failure) {
            withUnsafeTemporaryAllocation(byteCount: 4, alignment: 1) { bytes in
                var room = ByteRoom(bytes)
                room.write(text: "fünf")
            }
        }
    }
}
