import HubCore
import HubWire
import Testing

@testable import HubTransport

/// Both sides of what a request's head may hold.
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
            let refusal = try other.answer()
            #expect(refusal.status == 431 && refusal.headers["connection"] == "close" && refusal.text.hasPrefix("{\"error\":"))
            #expect(try other.ends())
            #expect(server.seen.all.count { if case .request = $0 { true } else { false } } == 1)
            try bystander.sendText("still here")
            #expect(try bystander.frame().text == "still here")
        }
    }

    @Test("a head of nearly 16 KB is read whole, a longer one is not", arguments: ["path", "query", "header"])
    func bytes(place: String) throws {
        let (short, long) = (RequestHead.bytesMax - 100, RequestHead.bytesMax + 1)
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

    @Test("a thousand query parameters are read in their order")
    func parameters() throws {
        try withServer { server in
            let peer = try server.plain()
            try peer.send(text: head("/x?" + (0..<1000).map { "p\($0)=\($0)" }.joined(separator: "&")))
            let kept = (0..<1000).map { "[\"p\($0)\",\"\($0)\"]" }.joined(separator: ",")
            #expect(try peer.answer().text.contains("[\(kept)]"))
        }
    }

    @Test("a header is read to its last byte", arguments: ["Authorization", "X-Client-Id"])
    func headerText(name: String) throws {
        try withServer { server in
            let peer = try server.plain()
            let text = String(repeating: "b", count: 12_000)
            try peer.send(text: head("/x", ["\(name): \(text)", "Accept: */*"]))
            #expect(try peer.answer().text.contains("\"\(name.lowercased())\":\"\(text)\""))
        }
    }
}
