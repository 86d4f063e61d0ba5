import HubCore
import Testing

@Suite("Frame")
struct FrameTests {
    @Test(
        "writes the shortest header that holds the length (RFC 6455, 5.2)",
        arguments: [
            (0, [0x81, 0]), (1, [0x81, 1]), (125, [0x81, 125]), (126, [0x81, 126, 0, 126]), (127, [0x81, 126, 0, 127]),
            (255, [0x81, 126, 0, 255]), (256, [0x81, 126, 1, 0]), (65_535, [0x81, 126, 255, 255]),
            (65_536, [0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]), (66_051, [0x81, 127, 0, 0, 0, 0, 0, 1, 2, 3]),
        ] as [(Int, [UInt8])])
    func headers(count: Int, header: [UInt8]) {
        let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        let frame = Frame.text(payload)
        #expect(Array(frame.prefix(header.count)) == header)
        #expect(Array(frame.dropFirst(header.count)) == payload)
        #expect(header.count <= Frame.headerBytesMax)
    }
}
