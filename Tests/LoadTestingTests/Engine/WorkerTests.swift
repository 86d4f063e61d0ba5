import Foundation
import Glibc
import HubTesting
import Testing

@testable import LoadTesting

@Suite("Worker")
struct WorkerTests {
    private static let upgrade = Array("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n".utf8)

    private func frame(_ first: UInt8, _ payload: [UInt8]) -> [UInt8] {
        payload.count < 126
            ? [first, UInt8(payload.count)] + payload : [first, 126, UInt8(payload.count >> 8), UInt8(payload.count & 255)] + payload
    }

    private func event(_ sequence: UInt32, filler: Int = 0) -> [UInt8] {
        Array(#"{"data":""#.utf8) + EventMark(kind: 0, stream: 0, due: 1, sequence: sequence).bytes + Array(repeating: 0x78, count: filler)
    }

    /// Events as they are, in pieces with a PING between them, and with a long length; then a close frame.
    private var said: [UInt8] {
        let second = event(1)
        return Self.upgrade + frame(0x81, event(0)) + frame(0x01, Array(second[..<20])) + frame(0x89, Array("hi".utf8))
            + frame(0x00, Array(second[20..<30])) + frame(0x80, Array(second[30...])) + frame(0x82, event(2, filler: 100))
            + frame(0x88, [0x10, 0x04])
    }

    private func run(_ writes: [ArraySlice<UInt8>]) async throws {
        let server = try OneConnection()
        let door = WorkerDoor()
        let targets = try Targets(["ws://127.0.0.1:\(server.port)"])
        // Given to its thread and not touched here again.
        nonisolated(unsafe) let worker = try Worker(door: door, targets: targets, kinds: [MeasuredKind("event", streams: 1)])
        let thread = Thread { worker.run() }
        thread.start()
        defer { door.post { $0.stop() } }
        door.post { worker in
            let plan = ConnectionPlan()
            plan.path = "/somewhere"
            worker.open(plan)
        }
        #expect(server.accept().hasPrefix("GET /somewhere HTTP/1.1\r\n"))
        var total: UInt64 = 0
        for part in writes {
            server.write(part)
            total += UInt64(part.count)
            let expected = total
            // Read before the next comes: so the cuts are where the test wants them.
            #expect(await eventually { door.ask { $0.counts.bytes } == expected })
        }
        let (counts, kinds) = door.ask { ($0.counts, $0.tally.counts) }
        #expect(kinds[0].received == 3)
        #expect(kinds[0].skipped == 0)
        #expect(counts.pings == 1)
        #expect(counts.closedByServer == [4100: 1])
        #expect(counts.open == 0)
        // A PONG with the PING's payload, and the close frame's code back; both masked.
        let pong = try #require(server.read(8))
        #expect(pong[..<2] == [0x8A, 0x82])
        #expect([pong[6] ^ pong[2], pong[7] ^ pong[3]] == Array("hi".utf8))
        let close = try #require(server.read(8))
        #expect(close[..<2] == [0x88, 0x82])
        #expect([close[6] ^ close[2], close[7] ^ close[3]] == [0x10, 0x04])
    }

    @Test("hears events that arrive byte by byte, in pieces and with a PING between them")
    func byteByByte() async throws {
        let said = said
        try await run(said.indices.map { said[$0...$0] })
    }

    @Test("hears the same at once, and cut in two anywhere")
    func cuts() async throws {
        let said = said
        try await run([said[...]])
        for cut in stride(from: 1, to: said.count, by: 7) { try await run([said[..<cut], said[cut...]]) }
    }

    @Test("a publisher tries again for some seconds where nobody listens, and says at last that it gave up")
    func abandoned() async throws {
        let nobody = try Targets(["ws://127.0.0.1:\(unusedPort())"])
        let door = WorkerDoor()
        nonisolated(unsafe) let worker = try Worker(door: door, targets: nobody, kinds: [MeasuredKind("event"), MeasuredKind("answer")])
        Thread { worker.run() }.start()
        defer { door.post { $0.stop() } }
        let place = door.ask { worker in
            let plan = PublishPlan(channels: ["a"], pace: .outstanding(1), connections: 2, bytes: 80, kind: 0, answeredKind: 1)
            return worker.publishers.add(Publisher(worker: worker, dialect: FloorDialect(authority: nobody.first.authority), plan: plan))
        }
        let began = ContinuousClock.now
        #expect(await eventually { door.ask { $0.publishers[place].counts.abandoned } == 2 })
        #expect(began.duration(to: .now) > .seconds(3))
    }

    /// Port of a socket that listened a moment ago.
    private func unusedPort() throws -> UInt16 { try OneConnection().port }

    @Test("uses another source address for each 25,000 connections to this machine, and none elsewhere")
    func sources() throws {
        let here = try Target("ws://127.0.0.1:1")
        #expect(here.source(of: 0) == 0)
        #expect(here.source(of: 24_999) == 0)
        #expect(here.source(of: 25_000) == UInt32(0x7F00_0002).bigEndian)
        #expect(here.source(of: 75_000) == UInt32(0x7F00_0004).bigEndian)
        #expect(try Target("ws://10.0.0.1:1").source(of: 75_000) == 0)
    }
}
