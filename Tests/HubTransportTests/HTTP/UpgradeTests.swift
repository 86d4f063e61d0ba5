import HubCore
import HubTesting
import Testing

@testable import HubTransport

@Suite("Upgrades", .blocking)
struct UpgradeTests {
    @Test("offered sub-protocols of Pusher's are selected, and none is needed", arguments: [nil, 5, 6, 7])
    func subProtocol(version: Int?) throws {
        try withServer { server in
            let peer = try server.plain()
            let name = version.map { "pusher-channels-protocol-\($0)" }
            let answer = try peer.upgrade(headers: name.map { ["Sec-WebSocket-Protocol: \($0)"] } ?? [])
            #expect(answer.status == 101)
            #expect(answer.headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
            #expect(answer.headers["sec-websocket-protocol"] == name)
            #expect(answer.headers["sec-websocket-extensions"] == nil)
            try peer.sendText("hello")
            #expect(try peer.frame().text == "hello")
        }
    }

    @Test("of several offers the first known one is selected; an offer to compress is not taken")
    func offers() throws {
        try withServer { server in
            let peer = try server.plain()
            let answer = try peer.upgrade(headers: [
                "Sec-WebSocket-Protocol: something-else, pusher-channels-protocol-7", "Sec-WebSocket-Extensions: permessage-deflate",
            ])
            #expect(answer.status == 101)
            #expect(answer.headers["sec-websocket-protocol"] == "pusher-channels-protocol-7")
            #expect(answer.headers["sec-websocket-extensions"] == nil)
            try peer.sendText("hello")
            #expect(try peer.frame().text == "hello")
        }
    }

    @Test(
        "an unknown sub-protocol is ignored: the connection goes on without one", arguments: ["chat", "pusher-channels-protocol-4", "a, b"])
    func unknownSubProtocol(offer: String) throws {
        try withServer { server in
            let peer = try server.plain()
            let answer = try peer.upgrade(headers: ["Sec-WebSocket-Protocol: \(offer)"])
            #expect(answer.status == 101 && answer.headers["sec-websocket-protocol"] == nil)
            try peer.sendText("hello")
            #expect(try peer.frame().text == "hello")
        }
    }

    @Test("the delegate gets path, query and origin; native clients send no origin")
    func request() throws {
        var behaviour = Behaviour()
        behaviour.opened = { loop, connection, query in
            loop.send(Frame.text(Array(query.map { "\($0.name)=\($0.value)" }.joined(separator: "|").utf8)), to: connection)
        }
        try withServer(behaviour) { server in
            let native = try server.client(path: "/app/key?protocol=7&client=js&version=8.6.0&flash=false")
            #expect(try native.frame().text == "protocol=7|client=js|version=8.6.0|flash=false")
            let browser = try server.client(path: "/be%2Dhind/app/else?client=a%20b", headers: ["Origin: https://example.com"])
            #expect(try browser.frame().text == "client=a b")
            let opened = try server.waitOpened(2)
            #expect(server.seen.all.contains(.opened(opened[0], path: "/app/key", origin: nil)))
            #expect(server.seen.all.contains(.opened(opened[1], path: "/be-hind/app/else", origin: "https://example.com")))
        }
    }

    @Test("the head may arrive byte by byte, and frames right behind it")
    func headInPieces() throws {
        try withServer { server in
            let peer = try server.plain()
            for byte in TestPeer.upgradeRequest().utf8 { try peer.stream.send([byte]) }
            #expect(try peer.answer(isHead: true).status == 101)
            let eager = try server.plain()
            // Pysher pings as soon as its socket is open; a client may not even wait for the answer.
            try eager.stream.send(Array(TestPeer.upgradeRequest().utf8) + TestPeer.frame(1, Array("eager".utf8)))
            #expect(try eager.answer(isHead: true).status == 101)
            #expect(try eager.frame().text == "eager")
        }
    }

    @Test("half a handshake, and none, time out while others are served")
    func timeOut() throws {
        var options = LoopOptions()
        options.requestTimeoutSeconds = 1
        try withServer(options: options) { server in
            let mute = try server.plain()
            let half = try server.plain()
            try half.send(text: "GET /app/key HTTP/1.1\r\nHost: localhost\r\nUpgr")
            #expect(try half.ends())
            #expect(try mute.ends())
            let peer = try server.client()
            try peer.sendText("hello")
            #expect(try peer.frame().text == "hello")
            #expect(try eventually { try server.on { $0.handle.load } == 1 })
        }
    }

    @Test("half a TLS handshake and plain HTTP to a TLS port harm nobody, and every connection is counted out once")
    func tls() throws {
        var options = try TestCertificate().options()
        options.requestTimeoutSeconds = 1
        try withServer(options: options) { server in
            let mute = try server.plain()
            let plain = try server.plain()
            try plain.send(text: "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            while try !plain.stream.receive(4096).isEmpty {}
            let gone = try server.plain()
            gone.stream.close()
            let peer = try TestPeer.upgraded(TLSSocket(RawSocket(port: server.port)))
            let long = String(repeating: "0123456789", count: 1000)
            try peer.sendText(long)
            #expect(try peer.frame().text == long)
            try peer.sendClose(1000)
            #expect(try peer.frame().closeCode == 1000)
            mute.stream.close()
            #expect(try eventually { try server.on { $0.handle.load } == 0 })
        }
    }

    @Test("past the connections a loop has room for, peers are turned away and others stay")
    func full() throws {
        var options = LoopOptions()
        options.connectionsMax = 8
        try withServer(options: options) { server in
            var inside: [TestPeer] = []
            var refused = 0
            for _ in 0..<20 {
                guard let peer = try? server.client() else {
                    refused += 1
                    continue
                }
                inside.append(peer)
            }
            #expect(inside.count + refused == 20 && !inside.isEmpty && inside.count <= 8)
            for peer in inside {
                try peer.sendText("in")
                #expect(try peer.frame().text == "in")
            }
            for peer in inside { peer.stream.close() }
            #expect(try eventually { try server.on { $0.handle.load == 0 && $0.connectionCount == 0 } })
            let peer = try server.client()
            try peer.sendText("room again")
            #expect(try peer.frame().text == "room again")
        }
    }

    @Test("answer and greeting reach the client in one packet, and an answer without a greeting waits for nothing")
    func onePacket() throws {
        var behaviour = Behaviour()
        behaviour.opened = { loop, connection, query in
            if !query.isEmpty { loop.send(Frame.text(Array("welcome".utf8)), to: connection) }
        }
        try withServer(behaviour) { server in
            let packets = try (1...5).map { _ in
                let greeted = try server.plain()
                #expect(try greeted.upgrade(path: "/app/key?protocol=7").status == 101)
                #expect(try greeted.frame().text == "welcome")
                return greeted.packetsReceived
            }
            // A loop that has to wait for a core in between is overtaken by the kernel's 200 ms.
            #expect(packets.contains(1), "\(packets)")
            func duration(_ path: String) throws -> Duration {
                try ContinuousClock().measure { for _ in 0..<100 { _ = try TestPeer.upgraded(server.plain().stream, path: path) } }
            }
            // The kernel alone would wait 200 ms for each.
            #expect(try duration("/app/key") < duration("/app/key?protocol=7") + .seconds(10))
        }
    }
}
