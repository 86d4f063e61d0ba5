import Glibc
import Synchronization
import Testing

@testable import HubTransport

@Suite("Placement and newcomers", .blocking)
struct PlacementTests {
    @Test("loops hold equally many, and where one has gone the next one goes", arguments: [1, 2, 3, 8])
    func even(loops: Int) {
        var placement = Placement()
        var loads = Array(repeating: 0, count: loops)
        for _ in 0..<1000 * loops { loads[placement.next(loads: loads)] += 1 }
        #expect(loads.allSatisfy { $0 == 1000 })
        loads[loops - 1] -= 7
        for _ in 0..<7 {
            #expect(placement.next(loads: loads) == loops - 1)
            loads[loops - 1] += 1
        }
    }

    /// With a fixed order among equals, publishers that came between sockets all went to the first loop.
    @Test("publishers that come between sockets are spread as well", arguments: [2, 3, 4], 1...12)
    func patterns(loops: Int, period: Int) {
        var placement = Placement()
        var loads = Array(repeating: 0, count: loops)
        var publishers = Array(repeating: 0, count: loops)
        for number in 0..<512 * period {
            let loop = placement.next(loads: loads)
            loads[loop] += 1
            if number % period == 0 { publishers[loop] += 1 }
        }
        let even = 512 / loops
        #expect(publishers.allSatisfy { abs($0 - even) * 10 <= even }, "\(publishers)")
    }

    @Test("a loop takes newcomers in a few at a time, in the order of their coming, and all of them")
    func aFewAtATime() throws {
        let limit = LoopOptions.adoptionsPerTurnMax
        let waiting = Recorder<Int>()
        var behaviour = Behaviour()
        behaviour.turnEnded = { waiting.append($0.newcomers.count) }
        try withServer(behaviour) { server in
            let count = limit * 3 + 1
            let peers = try server.on { loop in
                (0..<count).map { _ in
                    var pair: [Int32] = [0, 0]
                    precondition(
                        socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0, &pair) == 0)
                    loop.handle.hand(over: pair[0])
                    return pair[1]
                }
            }
            #expect(waiting.wait { $0.last(where: { $0 > 0 }) == 1 && $0.last == 0 })
            // Messages posted before this turn's drain are in it; the next turns have their share each.
            let steps = waiting.all.filter { $0 > 0 }.reduce(into: [Int]()) { if $0.last != $1 { $0.append($1) } }
            #expect(steps == [limit * 2 + 1, limit + 1, 1])
            #expect(server.group.handles[0].load == count)
            for peer in peers { close(peer) }
            #expect(eventually { server.group.handles[0].load == 0 })
        }
    }

    @Test(
        "the first bytes tell a publisher's request from whatever else",
        arguments: [
            ("POST /apps/1/events?auth_key=k HTTP/1.1\r\n", FirstWords.request), ("GET / HTTP/1.1", .request),
            ("GET /x?a=/app/k HTTP/1.1", .request),
            ("GET /app/key?protocol=7 HTTP/1.1", .other), ("GET /behind/a/proxy/app/key HTTP/1.1", .other), ("GET /app/", .other),
            ("\u{16}\u{3}\u{1}\u{2}", .other), ("G", .other), ("GET", .other), ("GET ", .request), ("get /x", .other),
        ])
    func words(text: String, expected: FirstWords) {
        #expect(FirstWords.judge(Array(text.utf8)) == expected)
    }

    /// With one count for both, sixteen publishers that came between sockets could all be on one loop.
    @Test("publishers are even on the loops, and sockets are, in whatever order they come")
    func kinds() throws {
        try withServer(loops: 2) { server in
            var peers: [TestPeer] = []
            for number in 0..<40 {
                if number % 5 == 0 {
                    let publisher = try server.plain()
                    try publisher.send(text: "POST /apps/1/events HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx")
                    _ = try publisher.answer()
                    peers.append(publisher)
                } else {
                    peers.append(try server.client())
                }
            }
            #expect(server.group.handles.map(\.requestLoad) == [4, 4])
            #expect(server.group.handles.map(\.load) == [20, 20])
            #expect(try server.on(0) { $0.connectionCount } == 16)
            for peer in peers { peer.stream.close() }
            #expect(eventually { server.group.handles.allSatisfy { $0.load == 0 && $0.requestLoad == 0 } })
        }
    }

    @Test("who says nothing waits in front of the loops, and is let go in time; who speaks or leaves does not wait there")
    func quiet() throws {
        var options = LoopOptions()
        options.requestTimeoutSeconds = 1
        try withServer(options: options) { server in
            let silent = try (0..<5).map { _ in try server.plain() }
            #expect(eventually { server.acceptor.waitingCount == 5 })
            #expect(server.group.handles[0].load == 0)
            silent[0].stream.close()
            #expect(eventually { server.acceptor.waitingCount == 4 })
            try silent[1].send(text: "GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try silent[1].answer().status == 200)
            #expect(server.group.handles[0].load == 1)
            for peer in silent[2...] { #expect(try peer.stream.receive(1).isEmpty) }
            #expect(eventually { server.acceptor.waitingCount == 0 })
        }
    }

    @Test("a stopping loop turns away who waits")
    func stopping() throws {
        let peers = Mutex<[Int32]>([])
        let server = try TestServer()
        _ = try server.on { loop in
            for _ in 0..<LoopOptions.adoptionsPerTurnMax * 4 {
                var pair: [Int32] = [0, 0]
                precondition(
                    socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0, &pair) == 0)
                loop.handle.hand(over: pair[0])
                peers.withLock { $0.append(pair[1]) }
            }
        }
        server.stop()
        #expect(server.group.handles[0].load == 0)
        for peer in peers.withLock({ $0 }) {
            // A child of another test, between its fork and its exec, may hold the socket for a moment longer.
            #expect(
                eventually {
                    var byte: UInt8 = 0
                    return read(peer, &byte, 1) == 0
                }, "its socket is closed")
            close(peer)
        }
    }
}
