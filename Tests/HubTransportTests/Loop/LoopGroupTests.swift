import Foundation
import HubCore
import Testing

@testable import HubTransport

@Suite("LoopGroup and Acceptor", .blocking, .serialized)
struct LoopGroupTests {
    @Test("connections are placed evenly, and where one has gone the next is placed")
    func even() throws {
        try withServer(loops: 2) { server in
            var peers: [TestPeer] = []
            for _ in 0..<20 { peers.append(try server.client()) }
            #expect(try server.on(0) { $0.connectionCount } == 10)
            #expect(try server.on(1) { $0.connectionCount } == 10)
            #expect(Set(try server.waitOpened(20)).count == 20)
            let gone = try peers.indices.filter { index in
                try peers[index].sendText("where am I?")
                _ = try peers[index].frame()
                guard case .text(let connection, _)? = server.seen.all.last(where: { if case .text = $0 { true } else { false } }) else {
                    return false
                }
                return connection.loop == 1
            }
            for index in gone.prefix(6) { peers[index].stream.close() }
            #expect(try eventually { try server.on(1) { $0.handle.load } == 4 })
            for _ in 0..<6 { peers.append(try server.client()) }
            #expect(try server.on(0) { $0.connectionCount } == 10)
            #expect(try server.on(1) { $0.connectionCount } == 10)
        }
    }

    @Test("stopping ends open connections, idle ones, half handshakes and open requests, and does not hang")
    func stop() throws {
        var behaviour = Behaviour()
        behaviour.request = { _, request, _ in request.path == "/later" ? nil : .describing(request) }
        let server = try TestServer(loops: 2, behaviour)
        var peers: [TestPeer] = []
        for _ in 0..<6 { peers.append(try server.client()) }
        for text in [
            "", "GET / HT", "GET /x HTTP/1.1\r\nHost: h\r\n\r\n", "GET /later HTTP/1.1\r\nHost: h\r\n\r\n",
            "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nx",
        ] {
            let peer = try server.plain()
            try peer.send(text: text)
            if text.contains("/x HTTP") && text.hasPrefix("GET") { _ = try peer.answer() }
            peers.append(peer)
        }
        #expect(eventually { server.group.handles.reduce(server.acceptor.waitingCount) { $0 + $1.load } == 11 })
        let ended = Recorder<Bool>()
        Thread {
            server.stop()
            ended.append(true)
        }.start()
        // A few seconds of our own, not the peers' time-outs; generous, because other tests use the machine at the same time.
        #expect(ended.wait(seconds: 15) { !$0.isEmpty })
        for peer in peers { while try !peer.stream.receive(4096).isEmpty {} }
        #expect(server.seen.all.count { if case .closed = $0 { true } else { false } } == 6)
        // Nothing happens any more, and nothing breaks.
        server.stop()
        server.group.handles[0].waker.wake()
    }

    @Test("a port in use is named with what to do about it")
    func portInUse() throws {
        try withServer { server in
            let error = #expect(throws: TransportError.self) { _ = try ListeningSocket(host: "127.0.0.1", port: server.port) }
            #expect(error?.description.contains("127.0.0.1:\(server.port)") == true)
            #expect(error?.description.contains("--port") == true)
        }
    }

    @Test("a host that nobody has is named")
    func badHost() throws {
        let error = #expect(throws: TransportError.self) { _ = try ListeningSocket(host: "256.1.1.1", port: 0) }
        #expect(error?.description.contains("256.1.1.1") == true)
    }

    @Test("who comes before the hub accepts waits, and is served then")
    func early() throws {
        let socket = try ListeningSocket(host: "127.0.0.1", port: 0)
        let early = try TestPeer(RawSocket(port: socket.port))
        try early.send(text: "GET /early HTTP/1.1\r\nHost: a\r\n\r\n")
        var behaviour = Behaviour()
        behaviour.request = { _, _, _ in HTTPResponse(status: 200, body: [1]) }
        let server = try TestServer(socket: socket, behaviour)
        defer { server.stop() }
        #expect(try early.answer().status == 200)
        #expect(server.port == socket.port)
        server.stop()
        #expect(throws: StreamError.self, "the socket was closed with the acceptor") { _ = try RawSocket(port: socket.port) }
    }

    @Test("accepted connections send at once, also those of a socket that somebody else bound")
    func sendsAtOnce() throws {
        let own = try ListeningSocket(host: "127.0.0.1", port: 0)
        let other = try ListeningSocket(host: "127.0.0.1", port: 0)
        var off: Int32 = 0
        setsockopt(other.descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &off, 4)
        for socket in [own, try ListeningSocket(inherited: dup(other.descriptor))] {
            let peer = try RawSocket(port: socket.port)
            var accepted: Int32 = -1
            let hasArrived = eventually {
                accepted = Glibc.accept(socket.descriptor, nil, nil)
                return accepted >= 0
            }
            #expect(hasArrived)
            var (isOn, length) = (Int32(0), socklen_t(4))
            #expect(getsockopt(accepted, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, &length) == 0 && isOn != 0)
            close(accepted)
            peer.close()
        }
    }

    @Test("a socket that somebody else bound is served, and anything else is no listening socket")
    func inherited() throws {
        let other = try ListeningSocket(host: "127.0.0.1", port: 0)
        let taken = try ListeningSocket(inherited: dup(other.descriptor))
        #expect(taken.port == other.port && taken.isLoopback && other.isLoopback)
        let server = try TestServer(socket: taken)
        _ = try server.client()
        server.stop()
        _ = try RawSocket(port: other.port)
        #expect(try !ListeningSocket(host: "0.0.0.0", port: 0).isLoopback)
        let (file, unbound) = (open("/dev/null", O_RDONLY), socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
        for descriptor in [file, unbound, -1] {
            let error = #expect(throws: TransportError.self) { _ = try ListeningSocket(inherited: descriptor) }
            #expect(error?.description.contains("ListenStream=") == true)
        }
        close(file)
        close(unbound)
    }

    @Test("an IPv6 socket says whether others can reach it", .enabled(if: (try? ListeningSocket(host: "::1", port: 0)) != nil))
    func inheritedIPv6() throws {
        #expect(try ListeningSocket(host: "::1", port: 0).isLoopback)
        #expect(try !ListeningSocket(host: "::", port: 0).isLoopback)
    }

    @Test("newcomers do not get the descriptors that the hub needs for itself, and are let in when others go")
    func keptDescriptors() async throws {
        // In a process of its own, whose descriptors are counted.
        await #expect(processExitsWith: .success) {
            var limit = rlimit(rlim_cur: 256, rlim_max: 256)
            precondition(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
            let end = Int32(256 - Acceptor.descriptorsKeptMax)
            try withServer { server in
                // After this answer every thread has opened its descriptors.
                let early = try server.plain()
                try early.send(text: "GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
                _ = try early.answer()
                early.stream.close()
                precondition(eventually { server.group.handles[0].load == 0 })
                var fillers: [Int32] = []
                while (fillers.last ?? 0) < end - 1 { fillers.append(open("/dev/null", O_RDONLY)) }
                // For the client's end of the first connection, and the hub's.
                for descriptor in fillers.suffix(2) { close(descriptor) }
                fillers.removeLast(2)
                let first = try server.plain()
                try first.send(text: "GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
                let served = try first.answer().status
                let isCutOff = try server.plain().ends()
                precondition(served == 200 && isCutOff, "\(served)")
                precondition(eventually { server.counts.refusedCount == 1 })
                let own = open("/dev/null", O_RDONLY)
                precondition(own >= 0)
                for descriptor in fillers.suffix(4) { close(descriptor) }
                let third = try server.plain()
                try third.send(text: "GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
                let servedAgain = try third.answer().status
                precondition(servedAgain == 200)
            }
        }
    }

    @Test("the soft limit is raised to the hard one, and lowered to what the library's tables hold")
    func descriptorLimit() async throws {
        await #expect(processExitsWith: .success) {
            func soft() -> rlim_t {
                var limit = rlimit()
                precondition(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 && limit.rlim_max == 300)
                return limit.rlim_cur
            }
            var limit = rlimit(rlim_cur: 100, rlim_max: 300)
            precondition(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
            precondition(LoopGroup.descriptorLimit() == 300 && soft() == 300)
            precondition(LoopGroup.descriptorLimit(most: 200) == 200 && soft() == 200)
            precondition(LoopGroup.descriptorLimit() == 300 && soft() == 300)
        }
    }

    @Test("starting and stopping leaves no descriptor behind")
    func descriptors() async throws {
        // In a process of its own: other tests open sockets all the time.
        await #expect(processExitsWith: .success) {
            func once() throws {
                try withServer(loops: 2) { server in
                    let peer = try server.client()
                    try peer.sendText("hello")
                    _ = try peer.frame()
                    let idle = try server.plain()
                    try idle.send(text: "GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
                    _ = try idle.answer()
                    peer.stream.close()
                    idle.stream.close()
                }
            }
            func openDescriptors() throws -> Int { try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count }
            // The first run opens the descriptors that the libraries keep.
            try once()
            let before = try openDescriptors()
            for _ in 0..<20 { try once() }
            let after = try openDescriptors()
            precondition(after <= before)
        }
    }

    @Test("connections give their descriptors back, whoever ends them, and others may have the numbers at once")
    func endedDescriptors() async throws {
        await #expect(processExitsWith: .success) {
            var behaviour = Behaviour()
            behaviour.text = { loop, connection, _ in loop.close(connection, code: 4000, reason: "bye") }
            try withServer(loops: 2, behaviour) { server in
                func load() -> Int { server.group.handles.reduce(0) { $0 + $1.load } }
                func openDescriptors() throws -> Int { try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count }
                func round() throws {
                    var peers: [TestPeer] = []
                    for number in 0..<30 {
                        let peer = number % 3 == 0 ? try server.plain() : try server.client()
                        if number % 3 == 0 { try peer.send(text: "GET /x HTTP/1.1\r\nHost: h\r\n\r\n") }
                        if number % 3 == 1 { try peer.sendText("end me") }
                        // Some leave while others come.
                        if number % 4 == 0 { peers.popLast()?.stream.close() }
                        peers.append(peer)
                    }
                    for peer in peers { peer.stream.close() }
                    precondition(eventually { load() == 0 }, "\(load()) connections are left")
                }
                try round()
                let before = try openDescriptors()
                for _ in 0..<10 { try round() }
                // A peer may leave before it is accepted, and is accepted and closed a moment later.
                let isBack = try eventually { try openDescriptors() <= before }
                let after = try openDescriptors()
                precondition(isBack, "\(before) descriptors before, \(after) after")
            }
        }
    }

    /// A descriptor that is closed once too often belongs to somebody else by then, and libuv ends a program whose loop has lost its own.
    @Test("servers that come and go at the same time take nothing from each other")
    func comingAndGoing() throws {
        try concurrently(8) { _ in
            for _ in 0..<25 {
                try withServer(loops: 2) { server in
                    let peer = try server.client()
                    try peer.sendText("here")
                    guard try peer.frame().text == "here" else { throw StreamError("no echo") }
                }
            }
        }
    }
}
