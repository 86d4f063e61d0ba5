import Dispatch
import HubCore
import Synchronization
import Testing

@testable import HubTransport

@Suite("Later answers", .blocking)
struct ReplyTests {
    private static let get = "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"

    private final class Turns: Sendable {
        let goOn = Atomic(true)
        let count = Atomic(0)
    }

    private static func later() -> Behaviour {
        var behaviour = Behaviour()
        behaviour.request = { _, _, _ in nil }
        return behaviour
    }

    private static func reply(_ server: TestServer, _ index: Int = 0) throws -> HTTPReply {
        func replies() -> [HTTPReply] { server.seen.all.compactMap { if case .request(let reply) = $0 { reply } else { nil } } }
        guard server.seen.wait({ $0.count { if case .request = $0 { true } else { false } } > index }) else {
            throw StreamError("no request")
        }
        return replies()[index]
    }

    @Test("an answer given later arrives, and a second one changes nothing")
    func twice() throws {
        try withServer(Self.later()) { server in
            let peer = try server.plain()
            for index in 0..<3 {
                try peer.send(text: Self.get)
                let reply = try Self.reply(server, index)
                try server.on { loop in
                    loop.respond(reply, .json(["n": .int(Int64(index))]))
                    loop.respond(reply, .json(["n": "again"]))
                }
                #expect(try peer.answer().text == "{\"n\":\(index)}")
                try server.on { $0.respond(reply, .json(["n": "late"])) }
            }
            #expect(try server.on { $0.http.answeredUpTo == $0.http.nextNumber })
        }
    }

    @Test("a handshake that waits for an answer becomes a WebSocket that is read")
    func handshakeBehind() throws {
        try withServer(Self.later()) { server in
            let peer = try server.plain()
            try peer.send(text: Self.get + TestPeer.upgradeRequest())
            let reply = try Self.reply(server)
            try server.on { $0.respond(reply, .json(["n": 1])) }
            #expect(try peer.answer().text == "{\"n\":1}")
            #expect(try peer.answer(isHead: true).status == 101)
            try peer.sendText("hello")
            #expect(try peer.frame().text == "hello")
        }
    }

    @Test("a turn that answered has its writes behind one more look at the sockets, unless they are few", arguments: [true, false])
    func putOff(hasFewWrites: Bool) throws {
        let steps = Recorder<String>()
        let (began, written) = (Recorder<UInt64>(), Recorder<UInt64>())
        var behaviour = Behaviour()
        behaviour.request = { loop, request, _ in
            began.append(loop.turnBeganAt)
            // A turn with more than a request: nothing is written ahead.
            loop.isAlone = false
            return .describing(request)
        }
        behaviour.hasFewWrites = { loop in
            steps.append("asked")
            loop.handle.waker.wake()
            return hasFewWrites
        }
        behaviour.woken = { steps.append("looked") }
        behaviour.wroteAhead = { _ in steps.append("written ahead") }
        behaviour.turnEnded = { loop in
            steps.append("written")
            written.append(loop.turnBeganAt)
        }
        try withServer(behaviour) { server in
            let peer = try server.plain()
            try peer.send(text: Self.get)
            _ = try peer.answer()
            #expect(steps.wait { ($0.firstIndex(of: "asked") ?? $0.count) < $0.count - 1 })
            #expect(steps.all.drop { $0 != "asked" }.dropFirst().first == (hasFewWrites ? "written" : "looked"))
            #expect(!steps.all.contains("written ahead"))
            // The time of a turn whose writes are put off goes on.
            #expect(written.wait { $0.contains(began.all[0]) })
        }
    }

    @Test("few events of a lone request are written before its answer, and their turn is not put off")
    func writtenAhead() throws {
        let steps = Recorder<String>()
        var behaviour = Behaviour()
        behaviour.hasFewWrites = { loop in
            steps.append("asked after \(loop.counters.responses.reduce(0, +)) answers")
            return true
        }
        behaviour.wroteAhead = { loop in steps.append("written after \(loop.counters.responses.reduce(0, +)) answers") }
        behaviour.turnEnded = { _ in steps.append("turn") }
        try withServer(behaviour) { server in
            let peer = try server.plain()
            func isWritten(_ step: String) -> Bool { step.hasPrefix("written") }
            // A request may arrive in the turn that adopts a connection, or with a wake-up.
            for _ in 0..<50 where !steps.all.contains(where: isWritten) {
                try peer.send(text: Self.get)
                _ = try peer.answer()
            }
            #expect(steps.wait { ($0.firstIndex(where: isWritten) ?? $0.count) < $0.count - 1 })
            let all = steps.all
            let written = try #require(all.firstIndex(where: isWritten))
            #expect(all[written - 1] == all[written].replacing("written", with: "asked"), "before the answer")
            #expect(all[written + 1] == "turn")
        }
    }

    @Test("of requests that arrive together none has events written ahead, and of one read at most the last")
    func together() throws {
        let steps = Recorder<String>()
        let isHeld = DispatchSemaphore(value: 0)
        var behaviour = Behaviour()
        behaviour.hasFewWrites = { _ in true }
        behaviour.wroteAhead = { _ in steps.append("written ahead") }
        behaviour.request = { _, request, _ in
            steps.append(request.path)
            if request.path == "/hold" { isHeld.wait() }
            return .describing(request)
        }
        func get(_ path: String) -> String { "GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n" }
        try withServer(behaviour) { server in
            let peers = try (0..<3).map { _ in try server.plain() }
            for peer in peers {
                try peer.send(text: get("/first"))
                _ = try peer.answer()
            }
            try peers[0].send(text: get("/hold"))
            #expect(steps.wait { $0.contains("/hold") })
            try peers[1].send(text: get("/a"))
            try peers[2].send(text: get("/a"))
            isHeld.signal()
            for peer in peers { _ = try peer.answer() }
            try peers[0].send(text: get("/b") + get("/c"))
            for _ in 0..<2 { _ = try peers[0].answer() }
            let all = steps.all
            #expect(zip(all, all.dropFirst()).allSatisfy { $1 != "written ahead" || !["/a", "/b"].contains($0) }, "\(all)")
        }
    }

    @Test("the first answer counts, also one within the call")
    func within() throws {
        var behaviour = Behaviour()
        behaviour.request = { loop, request, reply in
            loop.respond(reply, .json(["answer": "first"]))
            return request.path == "/both" ? .json(["answer": "returned"]) : nil
        }
        try withServer(behaviour) { server in
            let peer = try server.plain()
            for path in ["/x", "/both", "/x", "/both"] {
                try peer.send(text: "GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n")
                #expect(try peer.answer().text == #"{"answer":"first"}"#)
            }
        }
    }

    @Test("a loop that comes back at once turns without being woken, and answers requests in between", arguments: [false, true])
    func comingBack(later: Bool) throws {
        let turns = Turns()
        var behaviour = Behaviour()
        behaviour.turnEnded = { loop in
            // An engine does so that writes to very many connections, a piece per turn, and never gets done.
            guard turns.goOn.load(ordering: .relaxed) else { return }
            turns.count.add(1, ordering: .relaxed)
            loop.comeBackAtOnce()
        }
        if later { behaviour.request = { _, _, _ in nil } }
        try withServer(behaviour) { server in
            let peer = try server.plain()
            for index in 0..<20 {
                try peer.send(text: Self.get)
                if later {
                    let reply = try Self.reply(server, index)
                    try server.on { $0.respond(reply, .json([:])) }
                }
                #expect(try peer.answer().status == 200)
            }
            // The clock's own turns are four a second.
            let before = turns.count.load(ordering: .relaxed)
            #expect(eventually { turns.count.load(ordering: .relaxed) > before + 1000 })
            turns.goOn.store(false, ordering: .relaxed)
        }
    }

    @Test("an answer for a connection that is gone reaches nobody, also when its place is taken again")
    func gone() throws {
        try withServer(Self.later()) { server in
            let first = try server.plain()
            try first.send(text: Self.get)
            let stale = try Self.reply(server)
            first.stream.close()
            // While an answer is due the library does not read, so it learns of the end only when the answer is written.
            try server.on { $0.respond(stale, .json(["for": "nobody"])) }
            #expect(try eventually { try server.on { $0.handle.load } == 0 })
            let second = try server.plain()
            try second.send(text: Self.get)
            let fresh = try Self.reply(server, 1)
            #expect(stale != fresh)
            try server.on { loop in
                loop.respond(stale, .json(["for": "the dead"]))
                loop.respond(fresh, .json(["for": "the living"]))
            }
            #expect(try second.answer().text == #"{"for":"the living"}"#)
        }
    }

    @Test("an answer may take longer than a request may")
    func slow() throws {
        var options = LoopOptions()
        options.requestTimeoutSeconds = 1
        try withServer(options: options, Self.later()) { server in
            let peer = try server.plain()
            try peer.send(text: "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
            let reply = try Self.reply(server)
            let half = try server.plain()
            try half.send(text: "GET /x HT")
            // Its time-out is the clock of this test: when it has passed, so has the other's.
            #expect(try half.ends())
            let again = try server.plain()
            try again.send(text: "GET /x HT")
            #expect(try again.ends())
            try server.on { $0.respond(reply, .json(["in": "the end"])) }
            #expect(try peer.answer().text == #"{"in":"the end"}"#)
            try peer.send(text: Self.get)
            let next = try Self.reply(server, 1)
            try server.on { $0.respond(next, .json([:])) }
            #expect(try peer.answer().status == 200)
        }
    }

    @Test("a publisher gets its answer in front of the events that its turn has to send, which wait one turn and no more")
    func answersFirst() throws {
        // Answers written by the end of the first turn with a request.
        let written = Mutex<(isAsked: Bool, atTurnEnd: UInt64?)>((false, nil))
        var behaviour = Behaviour()
        behaviour.request = { _, _, _ in
            written.withLock { $0.isAsked = true }
            return .json([:])
        }
        behaviour.turnEnded = { loop in
            written.withLock { if $0.isAsked, $0.atTurnEnd == nil { $0.atTurnEnd = loop.counters.responses[2] } }
        }
        try withServer(behaviour) { server in
            let peer = try server.plain()
            try peer.send(text: "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
            #expect(try peer.answer().status == 200)
            #expect(eventually { written.withLock { $0.atTurnEnd } == 1 })
        }
    }

    @Test("the peer's address is known while its request is open")
    func address() throws {
        var behaviour = Behaviour()
        behaviour.request = { loop, _, reply in .json(["address": .string(loop.remoteAddress(of: reply))]) }
        try withServer(behaviour) { server in
            let peer = try server.plain()
            try peer.send(text: Self.get)
            #expect(try peer.answer().text == #"{"address":"127.0.0.1"}"#)
        }
    }
}
