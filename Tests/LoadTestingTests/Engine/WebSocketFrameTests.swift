import LoadTesting
import Testing

@Suite("WebSocketFrame")
struct WebSocketFrameTests {
    private static func frame(_ first: UInt8, _ count: Int, width: Int? = nil) -> [UInt8] {
        var bytes: [UInt8] = [first]
        let width = width ?? (count < 126 ? 0 : count < 65536 ? 2 : 8)
        bytes.append(width == 0 ? UInt8(count) : width == 2 ? 126 : 127)
        for place in stride(from: (width - 1) * 8, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: count >> place)) }
        return bytes + Array(repeating: 0x61, count: count)
    }

    @Test("reads every length form, and not before the last byte is there", arguments: [0, 1, 125, 126, 127, 65535, 65536, 70000])
    func lengths(count: Int) {
        let bytes = Self.frame(0x81, count)
        let whole = WebSocketFrame(opcode: 1, isFinal: true, headCount: bytes.count - count, payloadCount: count)
        #expect(WebSocketFrame.read(bytes) == .frame(whole))
        #expect(WebSocketFrame.read(bytes + [0x81]) == .frame(whole))
        let cuts = count < 200 ? Array(0..<bytes.count) : [0, 1, 2, 3, 4, 9, 10, bytes.count / 2, bytes.count - 1]
        for cut in cuts { #expect(WebSocketFrame.read(Array(bytes[..<cut])) == .incomplete) }
    }

    @Test(
        "refuses what no server may send",
        arguments: [
            [0xC1, 0x00], [0x81, 0x80, 1, 2, 3, 4], [0x89, 0x7E, 0x00, 0x7E], [0x09, 0x00],
            [0x81, 0x7F, 0x80, 0, 0, 0, 0, 0, 0, 0], [0x81, 0x7F, 0, 0, 0, 0, 0xFF, 0, 0, 0],
        ] as [[UInt8]])
    func malformed(bytes: [UInt8]) {
        guard case .malformed = WebSocketFrame.read(bytes) else {
            Issue.record("\(bytes) was read as \(WebSocketFrame.read(bytes))")
            return
        }
    }

    @Test("what the client sends is masked, and comes back unmasked", arguments: [0, 5, 125, 126, 65535, 65536])
    func masked(count: Int) {
        let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        let bytes = WebSocketFrame.masked(opcode: WebSocketFrame.Opcode.text, payload)
        let head = bytes.count - count - 4
        #expect(bytes[0] == 0x81)
        #expect(bytes[1] & 0x80 != 0)
        let mask = Array(bytes[head..<head + 4])
        #expect(mask != [0, 0, 0, 0])
        #expect(bytes[(head + 4)...].enumerated().map { $0.element ^ mask[$0.offset % 4] } == payload)
        // Without the mask bit and key it is a frame of its length.
        var bare = bytes
        bare[1] &= 0x7F
        bare.removeSubrange(head..<head + 4)
        #expect(WebSocketFrame.read(bare) == .frame(.init(opcode: 1, isFinal: true, headCount: head, payloadCount: count)))
    }
}
