import HubCore
import Testing

@testable import HubTransport

/// Both sides of what a request's head may hold. libwebsockets keeps these bounds and ends the connection without an answer.
@Suite("Limits of a request's head", .blocking)
struct HeadLimitTests {
    private func head(_ target: String, _ headers: [String] = []) -> String {
        (["GET \(target) HTTP/1.1", "Host: localhost"] + headers).joined(separator: "\r\n") + "\r\n\r\n"
    }

    /// Sends each request on a connection of its own: the first is answered, the second ends its connection, and others go on.
    private func expect(taken: String, as part: String, refused: String) throws {
        try withServer { server in
            let bystander = try server.client()
            let peer = try server.plain()
            try peer.send(text: taken)
            let answer = try peer.answer()
            #expect(answer.status == 200)
            #expect(answer.text.contains(part))
            let other = try server.plain()
            try? other.send(text: refused)
            #expect(throws: (any Error).self) { try other.answer() }
            #expect(server.seen.all.count { if case .request = $0 { true } else { false } } == 1)
            try bystander.sendText("still here")
            #expect(try bystander.frame().text == "still here")
        }
    }

    /// The bound is on what is kept: the path, the decoded query and the headers' values, with a few bytes between them.
    @Test("a head of nearly 16 KB is read whole, a longer one is not", arguments: ["path", "query", "header"])
    func bytes(place: String) throws {
        let (short, long) = (Int(LoopOptions.headBytesMax) - 100, Int(LoopOptions.headBytesMax) + 1)
        let request = { (count: Int) in
            let text = String(repeating: "b", count: count)
            return switch place {
            case "path": head("/\(text)")
            case "query": head("/x?a=\(text)")
            default: head("/x", ["X-Long: \(text)", "Accept: */*"])
            }
        }
        let kept = place == "header" ? "\"path\":\"/x\"" : String(repeating: "b", count: short)
        try expect(taken: request(short), as: kept, refused: request(long))
    }

    @Test("80 query parameters are read in their order, 100 are too many")
    func parameters() throws {
        let request = { (count: Int) in head("/x?" + (0..<count).map { "p\($0)=\($0)" }.joined(separator: "&")) }
        let kept = (0..<80).map { "[\"p\($0)\",\"\($0)\"]" }.joined(separator: ",")
        try expect(taken: request(80), as: "[\(kept)]", refused: request(100))
    }

    @Test("a header of 8191 bytes is looked at, a longer one counts as absent")
    func headerText() throws {
        try withServer { server in
            let peer = try server.plain()
            for (name, key) in [("Authorization", "authorization"), ("X-Client-Id", "x-client-id")] {
                let text = String(repeating: "b", count: RequestHead.textBytesMax - 1)
                try peer.send(text: head("/x", ["\(name): \(text)", "Accept: */*"]))
                #expect(try peer.answer().text.contains("\"\(key)\":\"\(text)\""))
                try peer.send(text: head("/x", ["\(name): \(text)b", "Accept: */*"]))
                let answer = try peer.answer()
                #expect(answer.status == 200)
                #expect(!answer.text.contains(key))
            }
        }
    }
}
