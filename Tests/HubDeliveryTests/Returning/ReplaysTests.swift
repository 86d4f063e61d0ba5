import HubCore
import Testing

@testable import HubDelivery

/// Bounds on the reads and writes that one connection can make the hub repeat.
@Suite struct ReplaysTests {
    private let connection = ConnectionID(loop: 0, slot: 1, generation: 1)

    private func arrival(_ channel: String, by connection: ConnectionID? = nil) -> Arrival {
        Arrival(connection: connection ?? self.connection, app: "1", channel: channel, user: "u")
    }

    private func replay(_ arrival: Arrival, events: Int) -> Replay {
        Replay(arrival: arrival, items: (0..<events).map { Replay.Item(event: "e\($0)", user: "u", recipient: 0) })
    }

    @Test(
        "an event is replayed to who came after its decision; one that was decided again since reaches them live",
        arguments: [(999, false, true), (1000, false, false), (1000, true, true), (2000, true, false)])
    func decidedAgain(at: Int64, isJustBefore: Bool, isReplayed: Bool) {
        var arrival = Arrival(connection: connection, app: "1", channel: "private-a", user: "u", at: 1000)
        if isJustBefore { arrival.decidedJustBefore = ["e"] }
        let event = EventRecord(
            id: "e", app: "1", channel: "private-a", name: "n", data: "{}", policy: .notify, committedAt: at, expiresAt: 90_000)
        let missed = MissedEvent(event: event, recipient: 0, note: RecipientNote(state: .live, choice: .awaited), isPushed: false)
        #expect(arrival.replayed([missed]).isEmpty == !isReplayed)
    }

    @Test("who subscribes again and again is replayed once until it has answered, and then what it missed meanwhile")
    func again() throws {
        var replays = Replays()
        replays.arrived(arrival("private-a"), now: 0)
        let first = replays.takeReady()
        #expect(first.count == 1)
        for _ in 0..<1000 { replays.arrived(arrival("private-a"), now: 0) }
        var ready = replays.takeReady()
        #expect(ready.isEmpty, "while it is read")
        let announced = replays.announce(replay(first[0], events: 100))
        let token = try #require(announced)
        let written = replays.wrote(token, cursor: 5, now: 0)
        #expect(written?.items.count == 100)
        for _ in 0..<1000 { replays.arrived(arrival("private-a"), now: 0) }
        ready = replays.takeReady()
        #expect(ready.isEmpty, "while it is not answered")
        let read = replays.received(connection, cursor: 5, now: 0)
        ready = replays.takeReady()
        #expect(read.count == 1 && ready.count == 1)
        replays.finished(ready[0], now: 0)
        ready = replays.takeReady()
        #expect(ready.isEmpty)
    }

    @Test("many channels of one connection are read one after another, and other connections do not wait for them")
    func oneAfterAnother() throws {
        var replays = Replays()
        for number in 0..<500 { replays.arrived(arrival("private-\(number)"), now: 0) }
        let other = ConnectionID(loop: 0, slot: 2, generation: 1)
        replays.arrived(arrival("private-a", by: other), now: 0)
        var ready = replays.takeReady()
        #expect(ready.map(\.connection) == [connection, other])
        var count = 0
        while let next = ready.first(where: { $0.connection == connection }) {
            count += 1
            #expect(next.channel == "private-\(count - 1)")
            replays.finished(next, now: 0)
            ready = replays.takeReady()
        }
        #expect(count == 500)
    }

    @Test("who does not answer is written a bounded number of events; who has left in between is not waited for")
    func unanswered() throws {
        var replays = Replays()
        for number in 0..<100 { replays.arrived(arrival("private-\(number)"), now: 0) }
        var count = 0
        while let next = replays.takeReady().first {
            count += 1
            let announced = replays.announce(replay(next, events: 100))
            let token = try #require(announced)
            // Every other replay comes to the loop after the end of its subscription.
            _ = replays.wrote(token, cursor: count % 2 == 0 ? UInt64(count) : 0, now: 0)
        }
        #expect(count == 20)
        let read = replays.received(connection, cursor: 20, now: 0)
        let ready = replays.takeReady()
        #expect(read.count == 10 && ready.count == 1)
        replays.disconnected(connection)
        let late = replays.announce(replay(ready[0], events: 1))
        #expect(late == nil)
    }

    @Test("single events that somebody missed wait together, and one who missed all gets all")
    func together() throws {
        var replays = Replays()
        func missed(_ events: Set<String>?) {
            var arrival = arrival("private-a")
            arrival.events = events
            replays.arrived(arrival, now: 0)
        }
        // One is being read, and the others wait for it.
        missed(["a"])
        missed(["b"])
        missed(["c"])
        let first = replays.takeReady()
        replays.finished(first[0], now: 0)
        missed(nil)
        let second = replays.takeReady()
        missed(["d"])
        replays.finished(second[0], now: 0)
        let third = replays.takeReady()
        #expect([first, second, third].map { $0.map(\.events) } == [[["a"]], [["b", "c"]], [nil]])
    }

    @Test("replays of a channel that goes to another owner are given up wherever they are, and others go on")
    func givenUp() throws {
        func isKept(_ app: String, _ channel: String) -> Bool { channel != "private-a" }
        // Being read.
        var replays = Replays()
        replays.arrived(arrival("private-a"), now: 0)
        replays.arrived(arrival("private-b"), now: 0)
        let first = replays.takeReady()
        replays.keep(isKept, now: 0)
        var ready = replays.takeReady()
        #expect(ready.map(\.channel) == ["private-b"], "the next one begins")
        var announced = replays.announce(replay(first[0], events: 1))
        #expect(announced == nil)
        replays.finished(first[0], now: 0)
        announced = replays.announce(replay(ready[0], events: 1))
        #expect(announced != nil, "the end of what is given up ends no other")
        // On its way, and written.
        for isWritten in [false, true] {
            var replays = Replays()
            replays.arrived(arrival("private-a"), now: 0)
            let ready = replays.takeReady()
            let announced = replays.announce(replay(ready[0], events: 1))
            let token = try #require(announced)
            if isWritten { _ = replays.wrote(token, cursor: 1, now: 0) }
            replays.keep(isKept, now: 0)
            _ = replays.wrote(token, cursor: 1, now: 0)
            let read = replays.received(connection, cursor: 1, now: 0)
            #expect(read.isEmpty)
        }
        // Not begun, and read unseen.
        replays = Replays()
        replays.arrived(arrival("private-a"), now: 0)
        replays.keep(isKept, now: 0)
        ready = replays.takeReady()
        #expect(ready.isEmpty)
        replays.keepUnseen(replay(arrival("private-a"), events: 1))
        replays.keepUnseen(replay(arrival("private-b"), events: 1))
        replays.keep(isKept, now: 0)
        let unseen = replays.takeUnseen(connection)
        #expect(unseen.map(\.arrival.channel) == ["private-b"])
    }

    @Test("replays of one connection are paced beyond a thousand")
    func pace() throws {
        var replays = Replays()
        func cycle(_ now: Int64) -> Bool {
            replays.arrived(arrival("private-a"), now: now)
            guard let next = replays.takeReady().first else { return false }
            replays.finished(next, now: now)
            return true
        }
        var begun = 0
        for _ in 0..<2000 where cycle(0) { begun += 1 }
        #expect(begun == Int(Replays.burst))
        for second in 1...10 where cycle(Int64(second) * 1000) { begun += 1 }
        #expect(begun == Int(Replays.burst) + 10)
    }
}
