import Glibc
import HubCore
import HubTesting
import Testing

@testable import GatewaySimulators

@Suite("Hostile peers") struct HostileTests {
    /// A good request on each gateway: whatever the others do, it has to succeed.
    private func expectService(_ fixture: Fixture) throws {
        let apns = try fixture.apnsClient().send("POST", "/3/device/\(Fixture.token)", fixture.apnsHeaders(), body: Fixture.alert)
        #expect(apns.status == 200)
        #expect(try fixture.sendFCM(["token": "T"], on: fixture.fcmClient()).status == 200)
        #expect(try Fixture.curl([fixture.gateways.controlURL + "/health"]).exitCode == 0)
    }

    @Test("random bytes, on every port")
    func garbage() throws {
        let fixture = try Fixture()
        let seed = UInt64.random(in: .min ... .max)
        var random = SeededRandom(state: seed)
        for _ in 0..<20 {
            let bytes = (0..<Int.random(in: 1...5000, using: &random)).map { _ in UInt8.random(in: .min ... .max, using: &random) }
            for port in [fixture.gateways.apnsPort, fixture.gateways.fcmPort] {
                _ = try PlainClient.exchange(port: port, bytes, endsSending: true)
            }
            // An end of head, so that the control port has something to judge.
            _ = try PlainClient.exchange(port: fixture.gateways.controlPort, bytes + Array("\r\n\r\n".utf8), endsSending: true)
        }
        try expectService(fixture)
        #expect(fixture.gateways.requests().count == 3, "seed \(seed)")
    }

    @Test("half a handshake, and connections without a word, up to the limit and beyond")
    func silence() throws {
        let fixture = try Fixture()
        var sockets: [Int32] = []
        defer { for socket in sockets { close(socket) } }
        for index in 0..<(SimulatorLimits.connectionsMax + 20) {
            let socket = try PlainClient.connect(port: fixture.gateways.apnsPort)
            sockets.append(socket)
            // A TLS record's head that promises more than comes.
            if index.isMultiple(of: 2) { _ = send(socket, [0x16, 3, 1, 2, 0, 1] as [UInt8], 6, Int32(MSG_NOSIGNAL)) }
        }
        try expectService(fixture)
    }

    @Test("idle connections make room for new ones")
    func eviction() throws {
        let fixture = try Fixture()
        var sockets: [Int32] = []
        defer { for socket in sockets { close(socket) } }
        for _ in 0..<(SimulatorLimits.connectionsMax + 20) {
            sockets.append(try PlainClient.connect(port: fixture.gateways.controlPort))
        }
        #expect(try Fixture.curl([fixture.gateways.controlURL + "/health"]).exitCode == 0)
    }

    @Test("header lists beyond the limit are refused, the connection goes on")
    func hugeHeaders() throws {
        let fixture = try Fixture()
        let client = try fixture.apnsClient()
        let huge = try fixture.apnsHeaders() + [("x-huge", String(repeating: "a", count: 9_000))]
        #expect(try client.send("POST", "/3/device/\(Fixture.token)", huge, body: Fixture.alert).status == 403)
        let many = try fixture.apnsHeaders() + (0..<200).map { ("x-\($0)", "1") }
        #expect(try client.send("POST", "/3/device/\(Fixture.token)", many, body: Fixture.alert).status == 403)
        #expect(try client.send("POST", "/3/device/\(Fixture.token)", fixture.apnsHeaders(), body: Fixture.alert).status == 200)
        let head = "GET /health HTTP/1.1\r\nx: " + String(repeating: "a", count: 20_000)
        #expect(try PlainClient.exchange(port: fixture.gateways.controlPort, Array(head.utf8)).hasPrefix("HTTP/1.1 431"))
        try expectService(fixture)
    }

    @Test("a body is refused above its limit, and cut off above the bound")
    func hugeBodies() throws {
        let fixture = try Fixture()
        let client = try fixture.apnsClient()
        let headers = try fixture.apnsHeaders()
        let large = [UInt8](repeating: 0x20, count: 300_000)
        let refused = try client.send("POST", "/3/device/\(Fixture.token)", headers, body: large)
        #expect(refused.status == 413)
        let record = try #require(fixture.gateways.requests().first)
        #expect(record.bodyBytes == 300_000 && record.body.count == SimulatorLimits.bodyBytesKept)
        let endless = [UInt8](repeating: 0x20, count: SimulatorLimits.bodyBytesMax + 100_000)
        #expect(try client.send("POST", "/3/device/\(Fixture.token)", headers, body: endless).endCode == 11)
        let fcm = try fixture.fcmClient()
        let bearer = [("authorization", "Bearer \(try fixture.accessToken(fcm))")]
        #expect(try fcm.send("POST", Fixture.sendPath, bearer, body: large).status == 400)
        let announced = "PUT /faults/a HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n"
        #expect(try PlainClient.exchange(port: fixture.gateways.controlPort, Array(announced.utf8)).hasPrefix("HTTP/1.1 413"))
        try expectService(fixture)
    }

    @Test("unfinished bodies of one connection have a bound together")
    func unfinishedBodies() {
        let room = SimulatorLimits.unfinishedBodyBytesMax / SimulatorLimits.bodyBytesKept
        let session = HTTP2Session(connection: 1, streamsMax: room * 2)
        let part = [UInt8](repeating: 0, count: 16_384)
        for stream in (0..<room * 2).map({ Int32($0 * 2 + 1) }) {
            session?.beganHeaders(stream: stream)
            for _ in 0..<SimulatorLimits.bodyBytesKept / part.count {
                part.withUnsafeBufferPointer { session?.receivedBody(stream: stream, bytes: $0) }
            }
        }
        // Those beyond were reset and forgotten.
        #expect(session?.openRequests == room)
    }

    @Test(
        "malformed HTTP/1.1 is refused and the connection closed",
        arguments: [
            ("GET\r\n\r\n", "400"), ("GET nothing HTTP/1.1\r\n\r\n", "400"), ("GET /health HTTP/1.1\r\nno colon\r\n\r\n", "400"),
            ("PUT /faults/a HTTP/1.1\r\nContent-Length: -5\r\n\r\n", "400"),
            ("PUT /faults/a HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "400"),
            ("PUT /faults/a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "411"), ("\r\n\r\n", "400"),
        ])
    func malformed(_ request: String, _ status: String) throws {
        let fixture = try Fixture()
        #expect(try PlainClient.exchange(port: fixture.gateways.controlPort, Array(request.utf8)).hasPrefix("HTTP/1.1 \(status) "))
    }

    @Test("requests sent behind one another over HTTP/1.1 are answered in order")
    func pipelined() throws {
        let fixture = try Fixture()
        let requests =
            "DELETE /requests HTTP/1.1\r\n\r\nGET /nothing HTTP/1.1\r\n\r\nGET /health HTTP/1.1\r\nConnection: close\r\n\r\n"
        let answers = try PlainClient.exchange(port: fixture.gateways.controlPort, Array(requests.utf8))
        #expect(answers.matches(of: /HTTP\/1.1 (\d+)/).map(\.1) == ["200", "404", "200"])
    }

    @Test("a client that vanishes during a delayed answer costs nothing")
    func vanished() throws {
        let fixture = try Fixture()
        try fixture.gateways.setFault(GatewayFault(delayMilliseconds: 100, times: 1), token: Fixture.token)
        do {
            let client = try fixture.apnsClient()
            client.submit("POST", "/3/device/\(Fixture.token)", try fixture.apnsHeaders(), body: Fixture.alert)
            try client.run(until: "the arrival") { !fixture.gateways.requests().isEmpty }
        }
        try expectService(fixture)
    }
}
