import HubCore
import Testing

@testable import HubWire

@Suite("Memory of header fields")
struct HeadMemoryTests {
    private static let usual = "Host: h\r\nContent-Length: 5\r\nContent-Type: application/json\r\nConnection: keep-alive\r\n\r\n"
    private static let lines = [
        "POST /apps/1/events?a=b HTTP/1.1", "GET / HTTP/1.1", "GET /x HTTP/1.0", "HEAD /console HTTP/1.1", "GET /console/api/apps HTTP/1.1",
        "GET /%63onsole HTTP/1.1", "TRACE / HTTP/1.1", "GET  / HTTP/1.1", "GET /%zz HTTP/1.1", "POST * HTTP/1.1", "",
    ]
    private static let fields = [
        usual, "Host: h\r\n\r\n", "Host: h\r\nConnection: close\r\n\r\n", "Content-Length: 5\r\n\r\n", "\r\n",
        "Host: h\r\nTransfer-Encoding: chunked\r\n\r\n", "Host: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
        "Host: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", "Host: h\r\nCookie: a=b\r\n\r\n", "Host: h\r\nOrigin: o\r\n\r\n",
        "Host: h\r\nAuthorization: Bearer t\r\n\r\n", "Host: h\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n",
        "Host: h\r\nIdempotency-Key: k\r\n\r\n",
        "Host: h\r\nX-Client-Id: c\r\n\r\n", "Host: h\r\nIf-None-Match: e\r\n\r\n", "Host: h\r\nX: y\n\r\n", "Host: h\r\n folded\r\n\r\n",
        "Host: h\r\nX: \(String(repeating: "y", count: 20_000))\r\n\r\n",
    ]

    private func read(_ text: String, _ memory: inout HeadMemory) -> RequestHead.Progress {
        Array(text.utf8).withUnsafeBytes { RequestHead.read($0, scanned: 0, memory: &memory) }
    }

    /// Without a dictionary's order.
    private func description(_ progress: RequestHead.Progress) -> String {
        guard case .complete(var head, let bytes) = progress else { return "\(progress)" }
        let headers = head.request.headers.sorted { $0.key < $1.key }
        head.request.headers = [:]
        return "\(bytes) \(headers) \(head)"
    }

    private func recalls(_ fields: String, _ memory: HeadMemory) -> Bool {
        Array(fields.utf8).withUnsafeBytes { memory.recall($0, at: 0) } != nil
    }

    @Test("a head means the same whatever heads came before it", arguments: fields)
    func sameMeaning(fields: String) {
        for first in Self.lines {
            var memory = HeadMemory()
            for line in ["POST / HTTP/1.1", first] {
                if case .complete(var head, _) = read(line + "\r\n" + fields, &memory) { memory.room.takeBack(&head.request) }
            }
            for line in Self.lines {
                for rest in [fields, fields + "hello", String(fields.dropLast()), Self.usual] {
                    let text = line + "\r\n" + rest
                    var (known, empty) = (memory, HeadMemory())
                    #expect(description(read(text, &known)) == description(read(text, &empty)), "\(line) after \(first)")
                }
            }
        }
    }

    @Test("only fields that mean the same behind every line, and name no one, are kept")
    func kept() {
        for (index, fields) in Self.fields.enumerated() {
            var memory = HeadMemory()
            _ = read("POST / HTTP/1.1\r\n" + fields, &memory)
            // The first three, and the console's, which the API reads only there.
            #expect(recalls(fields, memory) == (index < 3 || fields.contains("If-None-Match")), "\(fields.prefix(60))")
            memory = HeadMemory()
            for line in ["POST / HTTP/1.0", "POST /console HTTP/1.1"] { _ = read(line + "\r\n" + fields, &memory) }
            #expect(!recalls(fields, memory), "\(fields.prefix(60))")
        }
    }

    @Test("four blocks of fields are kept, and a fifth takes the place of the oldest")
    func bounds() {
        var memory = HeadMemory()
        let blocks = (0..<7).map { "Host: h\($0)\r\n\r\n" }
        for count in blocks.indices {
            _ = read("GET / HTTP/1.1\r\n" + blocks[count], &memory)
            #expect(blocks.map { recalls($0, memory) } == blocks.indices.map { $0 <= count && $0 > count - HeadMemory.blocksMax })
        }
        for (bytes, isKept) in [(HeadMemory.blockBytesMax, true), (HeadMemory.blockBytesMax + 1, false)] {
            let fields = "Host: " + String(repeating: "h", count: bytes - 10) + "\r\n\r\n"
            _ = read("GET / HTTP/1.1\r\n" + fields, &memory)
            #expect(fields.utf8.count == bytes && recalls(fields, memory) == isKept)
        }
    }

    @Test("known fields count towards the length of a head")
    func longHeads() {
        for spare in -2...2 {
            var (memory, empty) = (HeadMemory(), HeadMemory())
            _ = read("GET / HTTP/1.1\r\n" + Self.usual, &memory)
            let line = "GET /" + String(repeating: "x", count: RequestHead.bytesMax - Self.usual.utf8.count - 16 + spare) + " HTTP/1.1\r\n"
            #expect(description(read(line + Self.usual, &memory)) == description(read(line + Self.usual, &empty)), "\(spare) bytes")
        }
    }
}
