import Foundation
import Glibc
import HubCore
import Synchronization
import Testing

@testable import HubTransport

/// The kernel's reports of plain sockets and of the loop's waker, and a loop's reaction to each.
@Suite("Plain sockets", .blocking, .serialized)
struct PlainSocketTests {
    @Test("wakes count as one until the loop takes them, and each later one is news, although nobody reads the counter")
    func waker() throws {
        let (poller, waker) = (try Poller(), try LoopWaker())
        try poller.watch(waker.descriptor, once: true)
        #expect(poller.wait(milliseconds: 0) == 0 && !waker.takeWake())
        for round in 0..<3 {
            for _ in 0..<5 { waker.wake() }
            #expect(poller.wait(milliseconds: 1000) == 1, "round \(round)")
            #expect(poller[0].socket == nil)
            #expect(poller.wait(milliseconds: 0) == 0)
            #expect(waker.takeWake() && !waker.takeWake())
        }
    }

    // Guard: set before the first signal is sent, and the suite runs one test at a time.
    /// The waker's descriptor, for the handler of a signal, which sees no instance.
    private nonisolated(unsafe) static var counter: Int32 = -1

    @Test("a signal that ends a wait hides no event")
    func interrupted() throws {
        let (poller, waker) = (try Poller(), try LoopWaker())
        try poller.watch(waker.descriptor, once: true)
        Self.counter = waker.descriptor
        var (action, former) = (sigaction(), sigaction())
        action.__sigaction_handler.sa_handler = { _ in
            var one: UInt64 = 1
            _ = write(PlainSocketTests.counter, &one, 8)
        }
        #expect(sigaction(SIGUSR2, &action, &former) == 0)
        defer { _ = sigaction(SIGUSR2, &former, nil) }
        let (threads, found) = (Recorder<UInt>(), Recorder<Int>())
        for round in 0..<20 {
            Thread {
                // Threads of the pools block signals, and so do those that they start.
                var own = sigset_t()
                sigemptyset(&own)
                sigaddset(&own, SIGUSR2)
                pthread_sigmask(SIG_UNBLOCK, &own, nil)
                threads.append(UInt(pthread_self()))
                found.append(poller.wait(milliseconds: 60_000))
            }.start()
            #expect(threads.wait { $0.count > round })
            // Long enough for the thread to be in its wait, mostly; a signal that comes before proves nothing, and breaks nothing.
            _ = poll(nil, 0, 3)
            #expect(pthread_kill(pthread_t(threads.all[round]), SIGUSR2) == 0)
            #expect(found.wait { $0.count > round })
        }
        #expect(found.all.allSatisfy { $0 == 1 }, "\(found.all)")
    }

    @Test("a peer that resets the connection while its next request waits in the kernel is let go at once")
    func resetUnread() throws {
        var behaviour = Behaviour()
        behaviour.request = { _, _, _ in nil }
        try withServer(behaviour) { server in
            let peer = try server.plain()
            // The second request stops the reading; the answer to the first one never comes.
            try peer.send(text: "GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(
                try eventually {
                    try server.on { loop in loop.http.indices.contains { loop.http[$0]?.socket.pointee.isReading == false } }
                })
            var hard = linger(l_onoff: 1, l_linger: 0)
            setsockopt(peer.stream.descriptor, SOL_SOCKET, SO_LINGER, &hard, socklen_t(MemoryLayout<linger>.size))
            peer.stream.close()
            #expect(eventually { server.group.handles[0].load == 0 })
        }
    }

    @Test("a socket that another process still has open is not heard of again once it is closed")
    func sharedDescriptor() throws {
        let copies = Mutex<[Int32]>([])
        var behaviour = Behaviour()
        behaviour.request = { loop, _, reply in
            // A child process has such a copy while it is being started.
            if let connection = loop.http.connection(of: reply) { copies.withLock { $0.append(dup(connection.socket.pointee.descriptor)) } }
            return .json([:])
        }
        try withServer(behaviour) { server in
            defer { for copy in copies.withLock({ $0 }) { close(copy) } }
            let peer = try server.plain()
            try peer.send(text: "GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
            _ = try peer.answer()
            try server.on { loop in
                for index in loop.http.indices { if let connection = loop.http[index] { loop.end(connection.socket) } }
            }
            #expect(eventually { server.group.handles[0].load == 0 })
            // Bytes that arrive at the copy are events of a descriptor that the loop must have forgotten.
            try peer.send(text: "GET /b HTTP/1.1\r\nHost: h\r\n\r\n")
            let copy = copies.withLock { $0[0] }
            var readable = pollfd(fd: copy, events: Int16(POLLIN), revents: 0)
            #expect(poll(&readable, 1, 10_000) == 1)
            #expect(try server.on { $0.poller.wait(milliseconds: 0) } == 0)
        }
    }

    @Test("the kernel keeps a new connection until the peer has spoken, also with a socket that somebody else bound")
    func deferred() throws {
        let own = try ListeningSocket(host: "127.0.0.1", port: 0)
        let other = try ListeningSocket(host: "127.0.0.1", port: 0)
        var off: Int32 = 0
        #expect(setsockopt(other.descriptor, Int32(IPPROTO_TCP), TCP_DEFER_ACCEPT, &off, 4) == 0)
        for socket in [own, try ListeningSocket(inherited: dup(other.descriptor))] {
            var (seconds, length) = (Int32(0), socklen_t(4))
            #expect(getsockopt(socket.descriptor, Int32(IPPROTO_TCP), TCP_DEFER_ACCEPT, &seconds, &length) == 0)
            #expect(seconds > 0)
        }
    }
}
