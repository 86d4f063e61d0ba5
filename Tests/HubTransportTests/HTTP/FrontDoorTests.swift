import Foundation
import HubCore
import Testing

@testable import HubTransport

/// Heads of requests, legal and not, and how each is answered (RFC 9110, 9112 and 6455): at once, in HTTP/1.1, refusals as JSON.
@Suite("The front door", .blocking)
struct FrontDoorTests {
    /// One connection: what is sent, and what is answered to it.
    struct Row: Sendable {
        let name: String
        let request: String
        var statuses: [Int]
        /// Expected headers of the answer, in lower case; nil for a missing header.
        var headers: [String: String?] = [:]
        /// Part of the answer's body.
        var body = ""
        /// The connection ends behind the answer.
        var ends = false

        init(
            _ name: String, _ request: String, _ statuses: [Int], headers: [String: String?] = [:], body: String = "", ends: Bool = false
        ) {
            self.name = name
            self.request = request
            self.statuses = statuses
            self.headers = headers
            self.body = body
            self.ends = ends
        }
    }

    static func head(_ line: String, _ headers: [String] = []) -> String {
        ([line, "Host: localhost"] + headers).joined(separator: "\r\n") + "\r\n\r\n"
    }

    private static let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    private static let version = "Sec-WebSocket-Version: 13"

    static func upgrade(
        _ line: String = "GET /app/key HTTP/1.1", key: String? = Self.key, version: String? = Self.version,
        offer: [String] = ["Upgrade: websocket", "Connection: Upgrade"], with more: [String] = []
    ) -> String {
        head(line, offer + [key, version].compactMap { $0 } + more)
    }

    /// Waiting for time to pass would take longer than a client of these tests waits.
    static var patient: LoopOptions {
        var options = LoopOptions()
        options.requestTimeoutSeconds = 300
        return options
    }

    /// The connection goes on: another request is answered.
    static func goesOn(_ peer: TestPeer) throws -> Bool {
        try peer.send(text: head("GET /next HTTP/1.1"))
        return try peer.answer().text.contains("\"/next\"")
    }

    private static func complaint(_ row: Row, _ server: TestServer, piece: Int? = nil) throws -> String? {
        let peer = try server.plain()
        let bytes = Array(row.request.utf8)
        if let piece {
            // A peer that is refused early may be cut off before the last piece.
            for start in stride(from: 0, to: bytes.count, by: piece) {
                try? peer.stream.send(Array(bytes[start..<min(start + piece, bytes.count)]))
            }
        } else {
            try peer.stream.send(bytes)
        }
        let answer = try peer.answer(isHead: row.request.hasPrefix("HEAD") || row.statuses == [101])
        guard row.statuses.contains(answer.status) else { return "answered \(answer.status), not \(row.statuses.prefix(3))" }
        for (name, value) in row.headers where answer.headers[name]?.lowercased() != value?.lowercased() {
            return "\(name): \(answer.headers[name] ?? "missing"), not \(value ?? "missing")"
        }
        if !row.body.isEmpty, !answer.text.contains(row.body) { return "the body is \(answer.text.prefix(300))" }
        if answer.status >= 400, !answer.text.hasPrefix("{\"error\":\"") || answer.headers["content-type"] != "application/json" {
            return "the refusal is \(answer.text.prefix(100))"
        }
        if answer.status == 101 {
            try peer.sendText("hello")
            return try peer.frame().text == "hello" ? nil : "no echo behind the upgrade"
        }
        guard row.ends else { return try goesOn(peer) ? nil : "the next request is not answered" }
        if answer.headers["connection"]?.lowercased() != "close" { return "it does not say connection: close" }
        return try peer.ends() ? nil : "more behind the answer"
    }

    /// Tries every row on a connection of its own, some at a time.
    static func check(
        _ rows: [Row], options: LoopOptions = patient, _ behaviour: Behaviour = Behaviour(), piece: Int? = nil
    ) throws {
        try withServer(options: options, behaviour) { server in
            let bystander = try server.client()
            let faults = Recorder<String>()
            let lanes = 8
            try concurrently(lanes) { lane in
                for row in stride(from: lane, to: rows.count, by: lanes).map({ rows[$0] }) {
                    do {
                        if let complaint = try complaint(row, server, piece: piece) { faults.append("\(row.name): \(complaint)") }
                    } catch { faults.append("\(row.name): \(error)") }
                }
            }
            for fault in faults.all.sorted() { Issue.record("\(fault)") }
            print("\(rows.count - faults.all.count) of \(rows.count) requests were answered as they should")
            try bystander.sendText("still here")
            #expect(try bystander.frame().text == "still here")
            #expect(try eventually { try server.on { $0.connectionCount == 1 && $0.http.isEmpty && $0.handle.load == 1 } })
        }
    }

    // MARK: Handshakes

    private static let handshakes: [Row] = {
        var rows: [Row] = []
        rows.append(
            Row(
                "as it should be", upgrade(), [101],
                headers: ["sec-websocket-accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "upgrade": "websocket", "connection": "upgrade"]))
        rows.append(Row("in other letters", upgrade(offer: ["UPGRADE: WebSocket", "connection: keep-alive, upgrade"]), [101]))
        rows.append(
            Row("the offer among others", upgrade(offer: ["Upgrade: h2c, websocket", "Connection: Upgrade, HTTP2-Settings"]), [101]))
        rows.append(
            Row("two Connection headers", upgrade(offer: ["Upgrade: websocket", "Connection: keep-alive", "Connection: Upgrade"]), [101]))
        rows.append(Row("absolute form", upgrade("GET http://localhost/app/key HTTP/1.1"), [101]))
        rows.append(
            Row(
                "blanks around values",
                upgrade(key: "Sec-WebSocket-Key:\t dGhlIHNhbXBsZSBub25jZQ== \t", version: "Sec-WebSocket-Version:13"), [101]))
        rows.append(Row("no key", upgrade(key: nil), [400], ends: true))
        rows.append(Row("an empty key", upgrade(key: "Sec-WebSocket-Key: "), [400], ends: true))
        rows.append(Row("a short key", upgrade(key: "Sec-WebSocket-Key: dGhlIHNhbXBsZQ=="), [400], ends: true))
        rows.append(Row("a long key", upgrade(key: "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZSBhbmQgbW9yZQ=="), [400], ends: true))
        rows.append(
            Row(
                "a key of 200 bytes", upgrade(key: "Sec-WebSocket-Key: " + String(repeating: "A", count: 198) + "=="), [400],
                ends: true))
        rows.append(Row("a key that is no base64", upgrade(key: "Sec-WebSocket-Key: dGhlIHNhbXBsZ!Bub25jZQ=="), [400], ends: true))
        rows.append(Row("two keys", upgrade(offer: ["Upgrade: websocket", "Connection: Upgrade", key]), [400], ends: true))
        rows.append(
            Row(
                "version 8", upgrade(version: "Sec-WebSocket-Version: 8"), [426], headers: ["sec-websocket-version": "13"],
                ends: true))
        rows.append(
            Row(
                "version 0", upgrade(version: "Sec-WebSocket-Version: 0"), [426], headers: ["sec-websocket-version": "13"],
                ends: true))
        rows.append(
            Row(
                "version 130", upgrade(version: "Sec-WebSocket-Version: 130"), [426], headers: ["sec-websocket-version": "13"],
                ends: true))
        rows.append(
            Row(
                "a word for a version", upgrade(version: "Sec-WebSocket-Version: latest"), [426], headers: ["sec-websocket-version": "13"],
                ends: true))
        rows.append(Row("no version", upgrade(version: nil), [426], headers: ["sec-websocket-version": "13"], ends: true))
        rows.append(Row("by POST", upgrade("POST /app/key HTTP/1.1"), [405], headers: ["allow": "GET"], ends: true))
        rows.append(Row("by PUT", upgrade("PUT /app/key HTTP/1.1"), [405], headers: ["allow": "GET"], ends: true))
        rows.append(
            Row(
                "an unknown sub-protocol", upgrade(with: ["Sec-WebSocket-Protocol: chat"]), [101],
                headers: ["sec-websocket-protocol": nil]))
        rows.append(
            Row(
                "a version of Pusher's that is too old", upgrade(with: ["Sec-WebSocket-Protocol: pusher-channels-protocol-4"]), [101],
                headers: ["sec-websocket-protocol": nil]))
        rows.append(
            Row(
                "several unknown sub-protocols", upgrade(with: ["Sec-WebSocket-Protocol: chat, bearer.abc, mqtt"]), [101],
                headers: ["sec-websocket-protocol": nil]))
        rows.append(
            Row(
                "a known sub-protocol among others", upgrade(with: ["Sec-WebSocket-Protocol: chat,pusher-channels-protocol-7 , mqtt"]),
                [101], headers: ["sec-websocket-protocol": "pusher-channels-protocol-7"]))
        rows.append(
            Row(
                "a known sub-protocol in a second header",
                upgrade(with: ["Sec-WebSocket-Protocol: chat", "Sec-WebSocket-Protocol: pusher-channels-protocol-6"]), [101],
                headers: ["sec-websocket-protocol": "pusher-channels-protocol-6"]))
        rows.append(
            Row(
                "an offer to compress", upgrade(with: ["Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits"]), [101],
                headers: ["sec-websocket-extensions": nil]))
        rows.append(Row("outside of /app/: /metrics", upgrade("GET /metrics HTTP/1.1"), [200], body: "\"/metrics\""))
        rows.append(Row("outside of /app/: /apps/1/events", upgrade("GET /apps/1/events HTTP/1.1"), [200], body: "\"/apps/1/events\""))
        rows.append(Row("outside of /app/: /", upgrade("GET / HTTP/1.1"), [200], body: "\"/\""))
        rows.append(
            Row("outside of /app/: /application/key", upgrade("GET /application/key HTTP/1.1"), [200], body: "\"/application/key\""))
        rows.append(
            Row(
                "outside of /app/: POST with a body", upgrade("POST /apps/1/events HTTP/1.1", with: ["Content-Length: 4"]) + "body", [200],
                body: "\"body\":\"body\""))
        return rows
    }()

    @Test("each handshake gets the status that says why") func handshakes() throws {
        try Self.check(Self.handshakes)
    }

    @Test("half handshakes and half heads may come byte by byte") func dribbled() throws {
        try Self.check(Self.handshakes + Self.ordinary + Self.refusals.filter { $0.request.utf8.count < 1_000 }, piece: 1)
    }
}
