import Foundation
import HubTesting
import Synchronization
import Testing

@testable import LoadTesting

@Suite("Publisher")
struct PublisherTests {
    /// Keeps the due times of the requests that it makes.
    private struct NotingDialect: Dialect {
        final class Made: Sendable {
            let dues = Mutex<[UInt64]>([])
        }

        let made = Made()
        let name = "noting"
        let subprotocol: String? = nil
        let isBinary = false

        func path(channel: String) -> String { "/\(channel)" }
        func opening(channel: String) -> [OpeningStep] { [] }

        func publish(channel: String, data: String) -> PublishAction {
            var hint = 0
            let mark = unsafe Array(data.utf8).withUnsafeBytes { unsafe EventMark.find(in: $0, hint: &hint) }
            if let mark { made.dues.withLock { $0.append(mark.due) } }
            return .http(Array("POST /\(channel) HTTP/1.1\r\nContent-Length: 0\r\n\r\n".utf8))
        }
    }

    @Test("makes the next request of an open loop before it is due, and sends it on a line of its own")
    func ahead() async throws {
        // Nobody answers: each line takes one publish.
        let silent = try OneConnection()
        let door = WorkerDoor()
        let dialect = NotingDialect()
        let targets = try Targets(["ws://127.0.0.1:\(silent.port)"])
        nonisolated(unsafe) let worker = try Worker(door: door, targets: targets, kinds: [MeasuredKind("event"), MeasuredKind("answer")])
        Thread { worker.run() }.start()
        defer { door.post { $0.stop() } }
        let place = door.ask { worker in
            let plan = PublishPlan(channels: ["a"], pace: .rate(0.125), connections: 2, bytes: 80, kind: 0, answeredKind: 1)
            return worker.publishers.add(Publisher(worker: worker, dialect: dialect, plan: plan))
        }
        #expect(await eventually { door.ask { $0.publishers[place].isConnected } })
        // The first publish is due at once, and goes out before the next question.
        door.ask { $0.publishers[place].begin() }
        let (sent, dues) = door.ask { worker in
            let publisher = worker.publishers[place]
            let sent = publisher.counts.sent
            publisher.end()
            publisher.begin()
            return (sent, dialect.made.dues.withLock { $0 })
        }
        #expect(sent == 1)
        try #require(dues.count == 2)
        #expect(dues[1] - dues[0] == 8_000_000_000)
        // The line of the request that was not sent is free.
        #expect(await eventually { door.ask { $0.publishers[place].counts.sent } == 2 })
    }
}
