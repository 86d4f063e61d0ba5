import Testing

@testable import HubWire

@Suite("Bodies: framing and chunks")
struct BodyTests {
    @Test(
        "how a body is delimited",
        arguments: [
            (nil, nil, .success(.none)), ("0", nil, .success(.none)), ("5", nil, .success(.length(5))),
            ("100", nil, .success(.length(100))),
            ("101", nil, .success(.length(101))), ("-1", nil, .failure(400)), ("", nil, .failure(400)), ("1 ", nil, .failure(400)),
            ("٣", nil, .failure(400)),
            ("5,5", nil, .failure(400)), ("9223372036854775808", nil, .failure(400)), (nil, "chunked", .success(.chunked)),
            (nil, "Chunked", .success(.chunked)),
            ("5", "chunked", .failure(400)), (nil, "gzip", .failure(400)), (nil, "gzip, chunked", .failure(400)), (nil, "", .failure(400)),
        ] as [(String?, String?, Framing)])
    func framing(length: String?, encoding: String?, expected: Framing) {
        do throws(HeadRefusal) {
            #expect(try expected == .success(BodyFraming.read(contentLength: length, transferEncoding: encoding)))
        } catch {
            #expect(expected == .failure(error.status))
        }
    }

    enum Framing: Equatable, Sendable {
        case success(BodyFraming)
        case failure(Int)
    }

    /// Feeds a body in pieces of that size until it ends or fails.
    private static func decode(_ text: String, pieces: Int = 1, bodyBytesMax: Int = 1000) -> (progress: ChunkedBody.Progress, body: String)
    {
        var chunks = ChunkedBody()
        var body: [UInt8] = []
        let bytes = Array(text.utf8)
        var progress = ChunkedBody.Progress.incomplete
        for start in stride(from: 0, to: bytes.count, by: pieces) where progress == .incomplete {
            progress = bytes[start..<min(start + pieces, bytes.count)].withUnsafeBytes { piece in
                var rest = piece
                return chunks.receive(&rest, into: &body, bodyBytesMax: bodyBytesMax)
            }
        }
        return (progress, String(decoding: body, as: UTF8.self))
    }

    @Test(
        "chunks become a body, in pieces of every size",
        arguments: [
            ("0\r\n\r\n", ""), ("3\r\nabc\r\n0\r\n\r\n", "abc"), ("003\r\nabc\r\n0\r\n\r\n", "abc"),
            ("a\r\n0123456789\r\n1\r\n\n\r\n0\r\n\r\n", "0123456789\n"),
            ("3;x=y;z\r\nabc\r\n0;last\r\nA: b\r\nC: d\r\n\r\n", "abc"), ("3 \r\n\r\n\r\r\n000\r\n\r\nignored", "\r\n\r"),
        ])
    func chunks(text: String, body: String) {
        for pieces in 1...text.utf8.count {
            let (progress, decoded) = Self.decode(text, pieces: pieces)
            #expect(progress == .complete && decoded == body, "pieces of \(pieces)")
        }
    }

    @Test(
        "malformed chunks",
        arguments: [
            "g\r\n", "\r\n", ";\r\n", "3\r\nabcd", "3\nabc", "3\r\rabc", "000000001\r\n", "3\r\nabc\r\n\r\n", "0\r\nA: b\r\r", "-3\r\n",
        ])
    func malformed(text: String) {
        for pieces in 1...text.utf8.count { #expect(Self.decode(text, pieces: pieces).progress == .malformed) }
    }

    @Test("bounds: the body's, and that of extensions and trailers over all chunks")
    func bounds() {
        #expect(Self.decode("3e8\r\n" + String(repeating: "x", count: 1000) + "\r\n0\r\n\r\n").progress == .complete)
        #expect(Self.decode("3e9\r\n").progress == .tooLarge)
        #expect(Self.decode("ffffffff\r\n").progress == .tooLarge)
        #expect(Self.decode("3e8\r\n" + String(repeating: "x", count: 1000) + "\r\n1\r\n").progress == .tooLarge)
        #expect(Self.decode("1;" + String(repeating: "x", count: 5000)).progress == .malformed)
        #expect(Self.decode("0\r\nA: " + String(repeating: "x", count: 5000)).progress == .malformed)
        #expect(Self.decode(String(repeating: "1;" + String(repeating: "e", count: 400) + "\r\nx\r\n", count: 11)).progress == .malformed)
    }
}
