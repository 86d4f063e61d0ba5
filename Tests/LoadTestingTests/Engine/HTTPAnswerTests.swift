import LoadTesting
import Testing

@Suite("HTTPAnswer")
struct HTTPAnswerTests {
    @Test(
        "ends where its length, its chunks or its status say, and not before",
        arguments: [
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 200, false),
            ("HTTP/1.1 200 OK\r\ncontent-length:  0\r\nConnection: Close\r\n\r\n", 200, true),
            ("HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 202, false),
            ("HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\nA;x=y\r\n0123456789\r\n1\r\n.\r\n0\r\n\r\n", 202, false),
            ("HTTP/1.1 204 No Content\r\nServer: x\r\n\r\n", 204, false),
            ("HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\n\r\nlarge", 413, false),
        ])
    func answers(text: String, status: Int, closes: Bool) {
        let bytes = Array(text.utf8)
        let head = text.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)[0].utf8.count + 4
        let whole = HTTPAnswer(status: status, count: bytes.count, headCount: head, closes: closes)
        #expect(HTTPAnswer.read(bytes) == .answer(whole))
        #expect(HTTPAnswer.read(bytes + Array("HTTP/1.1 2".utf8)) == .answer(whole))
        for cut in bytes.indices { #expect(HTTPAnswer.read(Array(bytes[..<cut])) == .incomplete) }
    }

    @Test(
        "refuses what is no answer",
        arguments: ["SSH-2.0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"])
    func malformed(text: String) {
        guard case .malformed = HTTPAnswer.read(Array(text.utf8)) else {
            Issue.record("\(text) was taken for an answer")
            return
        }
    }
}
