import HubCore
import HubTesting
import PusherProtocol
import Testing

@testable import HubChannels

/// Receipts of clients that say `client=js`: the page's own `pusher:pong`s, counted.
@Suite("Receipts of pages")
struct PageReceiptTests {
    private static let channels = ["private-a", "private-b", "private-c"]

    private func hub() -> TestHub { TestHub(watched: Set(Self.channels)) }

    private func page(_ hub: TestHub, on channels: String...) -> TestClient {
        let client = hub.open(client: "js")
        for channel in channels { hub.subscribe(client, channel) }
        return client
    }

    private func pong(_ hub: TestHub, _ client: TestClient, times: Int = 1) {
        for _ in 0..<times { hub.say(client, #"{"event":"pusher:pong","data":{}}"#) }
    }

    /// Cursors of the receipts since the last call.
    private func receipts(_ hub: TestHub, of client: TestClient) -> [UInt64] {
        hub.engines[client.id.loop].takeReports().compactMap { report in
            guard case .receipt(client.id, let cursor, let byApplication) = report else { return nil }
            #expect(byApplication)
            return cursor
        }
    }

    /// Each event has a turn, and so a question, of its own.
    private func publish(_ hub: TestHub, _ events: ClosedRange<Int>, on channel: String) {
        for event in events {
            hub.publish("e", on: [channel], receipt: UInt64(event))
            hub.settle()
        }
    }

    @Test("behind its event a page is asked by pusher:ping, the others by PING, each in one write")
    func oneWrite() throws {
        let hub = hub()
        let others = (0..<3).map { _ in hub.open() }
        let pages = [page(hub, on: "private-a"), page(hub, on: "private-a")]
        for other in others { hub.subscribe(other, "private-a") }
        hub.sinks[0].forgetDeliveries()
        publish(hub, 7...7, on: "private-a")
        let deliveries = hub.sinks[0].deliveries
        #expect(deliveries.allSatisfy { $0.frames == 2 } && deliveries.map(\.slots.count).sorted() == [2, 3])
        for page in pages {
            #expect(page.pings.isEmpty && page.frames.suffix(2).map { $0["event"]?.stringValue } == ["e", "pusher:ping"])
        }
        for other in others { #expect(other.named("pusher:ping").isEmpty && other.pings.map(\.after) == [other.frames.count]) }
        _ = receipts(hub, of: others[0])
        hub.pong(others[0], try #require(others[0].pings.first).payload)
        pong(hub, pages[1])
        #expect(
            hub.engines[0].takeReports() == [
                .receipt(others[0].id, cursor: 1, byApplication: false), .receipt(pages[1].id, cursor: 1, byApplication: true),
            ])
        #expect(hub.violations.isEmpty)
    }

    @Test("where only pages are, or only others, all of them get one and the same write")
    func unmixed() {
        let hub = hub()
        let pages = (0..<3).map { _ in page(hub, on: "private-a") }
        let other = hub.open()
        hub.subscribe(other, "private-b")
        hub.sinks[0].forgetDeliveries()
        publish(hub, 1...1, on: "private-a")
        publish(hub, 2...2, on: "private-b")
        #expect(hub.sinks[0].deliveries.map { [$0.slots.count, $0.frames] } == [[3, 2], [1, 2]])
        #expect(pages.allSatisfy { $0.named("pusher:ping").count == 1 && $0.pings.isEmpty })
        #expect(other.pings.count == 1 && other.named("pusher:ping").isEmpty)
    }

    @Test("pages come and go among others, and everybody goes on being asked in their own way")
    func comingAndGoing() {
        let hub = hub()
        var random = SeededRandom(state: 5)
        var (pages, others): ([TestClient], [TestClient]) = ([], [])
        for event in 1...300 {
            switch random.below(4) {
            case 0: pages.append(page(hub, on: "private-a"))
            case 1:
                others.append(hub.open())
                hub.subscribe(others[others.count - 1], "private-a")
            case 2 where !pages.isEmpty: hub.close(pages.remove(at: random.below(pages.count)))
            case 3 where !others.isEmpty: hub.close(others.remove(at: random.below(others.count)))
            default: break
            }
            let before = (pages + others).map { ($0.named("pusher:ping").count, $0.pings.count, $0.published(on: "private-a").count) }
            hub.clock.advance(milliseconds: 250)
            publish(hub, event...event, on: "private-a")
            for (index, client) in (pages + others).enumerated() {
                let isPage = index < pages.count
                #expect(client.named("pusher:ping").count == before[index].0 + (isPage ? 1 : 0))
                #expect(client.pings.count == before[index].1 + (isPage ? 0 : 1))
                #expect(client.published(on: "private-a").count == before[index].2 + 1)
            }
        }
        #expect(hub.violations.isEmpty)
    }

    @Test("answers that come late stand for the questions in their order, over several channels")
    func late() {
        let hub = hub()
        let client = page(hub, on: "private-a", "private-b")
        publish(hub, 1...2, on: "private-a")
        publish(hub, 3...3, on: "private-b")
        publish(hub, 4...4, on: "private-a")
        _ = receipts(hub, of: client)
        pong(hub, client)
        #expect(receipts(hub, of: client) == [1])
        publish(hub, 5...5, on: "private-b")
        pong(hub, client, times: 2)
        #expect(receipts(hub, of: client) == [2, 3])
        pong(hub, client, times: 2)
        #expect(receipts(hub, of: client) == [4, 5])
    }

    @Test("events that share a turn share one question")
    func batch() {
        let hub = hub()
        let client = page(hub, on: "private-a")
        for event in 1...3 { hub.publish("e", on: ["private-a"], receipt: UInt64(event)) }
        hub.settle()
        #expect(client.frames.suffix(4).map { $0["event"]?.stringValue } == ["e", "e", "e", "pusher:ping"])
        pong(hub, client)
        #expect(receipts(hub, of: client) == [1])
    }

    @Test("a stream of events shares questions, as it shares PINGs")
    func stream() {
        let hub = hub()
        let (client, other) = (page(hub, on: "private-a"), hub.open())
        hub.subscribe(other, "private-a")
        for event in 1...400 {
            publish(hub, event...event, on: "private-a")
            hub.clock.advance(milliseconds: 10)
        }
        #expect(client.named("pusher:ping").count == 8 + 15 && other.pings.count == 8 + 15)
    }

    @Test("a pong that nobody asked for earns nothing, neither now nor later")
    func unasked() {
        let hub = hub()
        let client = page(hub, on: "private-a")
        pong(hub, client, times: 50)
        publish(hub, 1...1, on: "private-a")
        #expect(receipts(hub, of: client).isEmpty)
        pong(hub, client, times: 3)
        #expect(receipts(hub, of: client) == [1])
        publish(hub, 2...2, on: "private-a")
        #expect(receipts(hub, of: client).isEmpty)
        pong(hub, client)
        #expect(receipts(hub, of: client) == [2])
    }

    @Test("whoever is asked by PING has nothing of a pusher:pong, and a page nothing of a PONG")
    func otherKind() {
        let hub = hub()
        let (client, other) = (page(hub, on: "private-a"), hub.open(client: "java-client"))
        hub.subscribe(other, "private-a")
        publish(hub, 1...1, on: "private-a")
        _ = receipts(hub, of: client)
        pong(hub, other, times: 3)
        hub.pong(client, Array("r1".utf8))
        #expect(hub.engines[0].takeReports().isEmpty && hub.engines[0].counters.strayReceipts == 1)
    }

    @Test("what a page still owes of a channel that it left is not taken for another channel's answer")
    func leftChannel() {
        let hub = hub()
        let client = page(hub, on: "private-a", "private-b")
        publish(hub, 1...2, on: "private-a")
        publish(hub, 3...3, on: "private-b")
        hub.unsubscribe(client, "private-a")
        _ = receipts(hub, of: client)
        pong(hub, client, times: 2)
        #expect(receipts(hub, of: client).isEmpty)
        pong(hub, client, times: 2)
        #expect(receipts(hub, of: client) == [3])
        hub.subscribe(client, "private-a")
        publish(hub, 4...4, on: "private-a")
        _ = receipts(hub, of: client)
        pong(hub, client, times: 2)
        #expect(receipts(hub, of: client) == [4], "questions from before it came are none of its own")
    }

    @Test("who is far behind is told of by the newer questions only, and never of what it has not read")
    func farBehind() {
        let hub = hub()
        let (client, quick) = (page(hub, on: "private-a", "private-b"), page(hub, on: "private-b"))
        let count = PingLog.rememberedMax + 10
        for event in 1...count {
            hub.clock.advance(milliseconds: 250)
            publish(hub, event...event, on: "private-a")
        }
        hub.clock.advance(milliseconds: 250)
        publish(hub, count + 1...count + 1, on: "private-b")
        _ = receipts(hub, of: client)
        pong(hub, client, times: 10)
        #expect(receipts(hub, of: client).isEmpty, "these are forgotten")
        pong(hub, client)
        #expect(receipts(hub, of: client) == [11])
        pong(hub, client, times: count)
        #expect(receipts(hub, of: client) == (12...UInt64(count) + 1).map { $0 })
        pong(hub, quick, times: 2)
        #expect(receipts(hub, of: quick) == [UInt64(count) + 1])
    }

    @Test("a question to one page waits for the turn that is on its way, so that answers stay in order")
    func amidATurn() throws {
        let hub = TestHub(watched: Set(Self.channels), writesPerPieceMax: 1)
        let (first, last) = (page(hub, on: "private-a"), page(hub, on: "private-a"))
        hub.publish("e", on: ["private-a"], receipt: 1)
        hub.engines[0].flush()
        #expect(first.published(on: "private-a") == ["e"] && last.published(on: "private-a").isEmpty)
        hub.engines[0].receive(.prove(event: 9, [last.id]))
        #expect(last.frames.suffix(3).map { $0["event"]?.stringValue } == ["e", "pusher:ping", "pusher:ping"])
        _ = receipts(hub, of: last)
        pong(hub, last)
        #expect(receipts(hub, of: last) == [1])
        hub.settle()
        #expect(hub.violations.isEmpty)
    }

    @Test("who leaves while questions alone are on their way has been asked before, and whoever comes in that place has not")
    func leavingAmidQuestions() {
        let hub = TestHub(watched: Set(Self.channels), writesPerPieceMax: 1)
        let pages = (0..<3).map { _ in page(hub, on: "private-a") }
        let other = hub.open()
        hub.subscribe(other, "private-a")
        publish(hub, 1...9, on: "private-a")
        hub.clock.advance(milliseconds: 250)
        hub.engines[0].flush()
        let asked = (pages + [other]).map { $0.named("pusher:ping").count + $0.pings.count }
        #expect(asked.sorted() == [8, 8, 8, 9], "one has the ninth question")
        for leaver in [pages[2], other] { hub.close(leaver) }
        #expect(pages[2].named("pusher:ping").count == 9 && other.pings.count == 9)
        let newcomers = [page(hub, on: "private-a"), page(hub, on: "private-a")]
        hub.settle()
        #expect(newcomers.allSatisfy { $0.named("pusher:ping").isEmpty && $0.pings.isEmpty })
        #expect(hub.violations.isEmpty)
    }

    @Test(
        "no receipt speaks of more than the page has read, and none is missing once it has read all",
        arguments: 1...(Extent.isShort ? 5 : 20) as ClosedRange<UInt64>)
    func inTruth(seed: UInt64) throws {
        let hub = TestHub(loops: 2, seed: seed, watched: Set(Self.channels), writesPerPieceMax: 2)
        var random = SeededRandom(state: seed &* 77)
        var clients = (0..<8).map { hub.open($0 % 2, client: $0 < 6 ? "js" : nil) }
        /// Per client, how many frames the page has read, and its receipts with what it had read then.
        var read: [ConnectionID: Int] = [:]
        var told: [ConnectionID: [(cursor: UInt64, read: Int)]] = [:]
        /// Where the subscriptions that a client has now began, in its frames.
        var begun: [ConnectionID: [String: Int]] = [:]
        var cursors: [[String]: UInt64] = [:]
        var published = 0
        func collect() {
            for (loop, engine) in hub.engines.enumerated() {
                for report in engine.takeReports() {
                    switch report {
                    case .pinged(let events, let cursor): for event in events { cursors[["\(loop)", "e\(event)"]] = cursor }
                    case .replayed(_, let events, let cursor): for event in events { cursors[["\(loop)", "e\(event)"]] = cursor }
                    case .receipt(let id, let cursor, _): told[id, default: []].append((cursor, read[id] ?? 0))
                    default: break
                    }
                }
            }
        }
        func readOn(_ client: TestClient) {
            guard let position = read[client.id] ?? Optional(0), position < client.frames.count else { return }
            read[client.id] = position + 1
            if client.frames[position]["event"] == "pusher:ping" { pong(hub, client) }
            collect()
        }
        for _ in 0..<1500 {
            let client = clients[random.below(clients.count)]
            let channel = Self.channels[random.below(Self.channels.count)]
            switch random.below(12) {
            case 0 where begun[client.id]?[channel] == nil:
                hub.subscribe(client, channel)
                begun[client.id, default: [:]][channel] = client.frames.count
            case 1 where begun[client.id]?[channel] != nil && random.below(3) == 0:
                hub.unsubscribe(client, channel)
                begun[client.id]?[channel] = nil
            case 2, 3, 4:
                published += 1
                hub.publish("e\(published)", on: [channel], from: random.below(2), receipt: UInt64(published))
            case 5: hub.engines[client.id.loop].receive(.prove(event: 0, [client.id]))
            case 6 where begun[client.id]?[channel] != nil:
                published += 1
                let name = try #require(ChannelName(channel))
                let frame = Frame.text(ServerEvent.event(name: "e\(published)", channel: name, data: DataLiteral(content: "{}")))
                hub.engines[client.id.loop].receive(.replay(client.id, channel: name, frames: frame, events: [UInt64(published)]))
            case 7: hub.clock.advance(milliseconds: Int64(random.below(300)))
            case 8: hub.step()
            case 9: hub.engines[random.below(2)].flush()
            case 10 where random.below(40) == 0:
                hub.close(client)
                clients.removeAll { $0 === client }
                clients.append(hub.open(random.below(2), client: "js"))
            default: for _ in 0..<random.below(4) { readOn(client) }
            }
            collect()
        }
        hub.settle()
        hub.clock.advance(seconds: 1)
        hub.settle()
        collect()
        for client in clients { while read[client.id] ?? 0 < client.frames.count { readOn(client) } }
        var judged = 0
        var mistakes: [String] = []
        for client in clients + hub.everybody.filter(\.isGone) {
            let receipts = told[client.id] ?? []
            for (position, frame) in client.frames.enumerated() {
                guard let name = frame["event"]?.stringValue, name.hasPrefix("e"), let channel = frame["channel"]?.stringValue,
                    let cursor = cursors[["\(client.id.loop)", name]]
                else { continue }
                let receipt = receipts.first { $0.cursor >= cursor }
                if let receipt, receipt.read <= position { mistakes.append("\(client.id) had not read \(name)") }
                guard !client.isGone, let start = begun[client.id]?[channel], position >= start, !client.named("pusher:ping").isEmpty
                else { continue }
                judged += 1
                if receipt == nil { mistakes.append("\(client.id) has read \(name)") }
            }
        }
        #expect(mistakes.isEmpty, "\(mistakes.count): \(mistakes.prefix(3))")
        #expect(judged > 50 && hub.violations.isEmpty)
    }
}
