import HubScaleOut
import HubTesting
import Testing

@Suite("Replies of Redis")
struct ReplyReaderTests {
    private static let replies =
        "+OK\r\n-ERR wrong number\r\n:-12\r\n$5\r\na\r\nbc\r\n$-1\r\n$0\r\n\r\n*-1\r\n*0\r\n*2\r\n*2\r\n:1\r\n$1\r\nx\r\n*0\r\n-LOADING\r\n"
    private static let values: [RedisReply] = [
        .bytes(Array("OK".utf8)), .error(.refused(code: "ERR", message: "wrong number")), .integer(-12), .bytes(Array("a\r\nbc".utf8)),
        .null,
        .bytes([]), .null, .array([]), .array([.array([.integer(1), .bytes([UInt8(ascii: "x")])]), .array([])]),
        .error(.refused(code: "LOADING", message: "")),
    ]

    @Test("are the same in pieces of every length")
    func pieces() throws {
        let bytes = Array(Self.replies.utf8)
        for length in 1...bytes.count {
            var (reader, found) = (ReplyReader(), [RedisReply]())
            for start in stride(from: 0, to: bytes.count, by: length) {
                try bytes[start..<min(bytes.count, start + length)].withUnsafeBytes { try reader.append($0) }
                while let reply = try reader.next() { found.append(reply) }
            }
            #expect(found == Self.values, "pieces of \(length) bytes")
            #expect(!reader.isWithinReply)
        }
    }

    @Test(
        "that break the rules or the bounds are refused",
        arguments: [
            "HTTP/1.1 400 Bad Request\r\n", ":\r\n", ":+1\r\n", ":1x\r\n", ":99999999999999999999\r\n", "$-2\r\n", "$2\r\nabc\r\n",
            "$3\r\nabcde",
            "+a\n", "*-2\r\n", "*9\r\n", "$65\r\n", "*1\r\n*1\r\n*1\r\n*1\r\n", "+" + String(repeating: "a", count: 40),
        ])
    func broken(text: String) throws {
        var limits = ReplyReader.Limits()
        (limits.stringMax, limits.itemsMax, limits.depthMax, limits.lineMax, limits.bytesMax) = (64, 8, 3, 32, 400)
        var reader = ReplyReader(limits: limits)
        #expect(throws: RedisFailure.self) {
            try Array(text.utf8).withUnsafeBytes { try reader.append($0) }
            while try reader.next() != nil {}
        }
    }

    @Test("hold no more than their bound, whatever comes")
    func bounded() throws {
        var limits = ReplyReader.Limits()
        limits.bytesMax = 400
        var reader = ReplyReader(limits: limits)
        #expect(throws: RedisFailure.self) {
            for _ in 0..<1_000 {
                try Array("*9\r\n$9\r\nabcdefghi\r\n".utf8).withUnsafeBytes { try reader.append($0) }
                _ = try reader.next()
            }
        }
        #expect(reader.waiting <= 400)
    }

    @Test("commands are encoded as Redis reads them, and so as arrays of strings")
    func commands() throws {
        var bytes: [UInt8] = []
        RedisCommand("CLIENT SETNAME", texts: ["tandem", ""]).encode(into: &bytes)
        #expect(String(decoding: bytes, as: UTF8.self) == "*4\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$6\r\ntandem\r\n$0\r\n\r\n")
        var reader = ReplyReader()
        try bytes.withUnsafeBytes { try reader.append($0) }
        #expect(try reader.next() == .array(["CLIENT", "SETNAME", "tandem", ""].map { .bytes(Array($0.utf8)) }))
    }
}
