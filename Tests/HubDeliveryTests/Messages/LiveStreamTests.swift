import Dispatch
import HubCore
import HubDelivery
import HubTesting
import Testing

@Suite("The live stream")
struct LiveStreamTests {
    private let clock = ManualClock()

    private func stream() -> LiveStream { LiveStream(time: clock) }

    private func join(_ stream: LiveStream, app: String = "1", channel: String = "c", user: String = "u") {
        stream.note(app: app, .join, channel: channel, user: user) { .join(socket: "1.2") }
    }

    @Test("collects nothing until somebody asks, then what the filter wants, once, and stops when nobody asks any more")
    func life() throws {
        let stream = stream()
        stream.note(app: "1", .join, channel: "c", user: "u") {
            Issue.record("made for nobody")
            return .join(socket: "")
        }
        #expect(!stream.isWatched)
        let filter = LiveFilter(app: "1", channel: "c", user: "u", kinds: [.join])
        let begin = try #require(stream.page(filter, after: nil))
        #expect(begin.facts.isEmpty && !begin.isGap && stream.isWatched)
        join(stream)
        for (app, channel, user) in [("2", "c", "u"), ("1", "d", "u"), ("1", "c", "v")] {
            join(stream, app: app, channel: channel, user: user)
        }
        stream.note(app: "1", .leave, channel: "c", user: "u") { .leave(socket: nil) }
        let page = try #require(stream.page(filter, after: begin.cursor))
        #expect(page.facts.map(\.detail) == [.join(socket: "1.2")] && page.skipped == 0 && !page.isGap)
        #expect(stream.page(filter, after: page.cursor)?.facts.isEmpty == true)
        #expect(stream.page(filter, after: begin.cursor)?.facts.count == 1, "an answer that was lost can be asked for again")
        clock.advance(seconds: LiveStream.silenceMax / 1000 + 1)
        join(stream)
        #expect(!stream.isWatched)
        #expect(stream.page(filter, after: page.cursor)?.isGap == true)
    }

    @Test("a cursor of another filter, app or process begins anew, with a gap")
    func cursors() throws {
        let stream = stream()
        let cursor = try #require(stream.page(LiveFilter(app: "1"), after: nil)).cursor
        join(stream)
        for filter in [LiveFilter(app: "2"), LiveFilter(app: "1", user: "u")] {
            let page = try #require(stream.page(filter, after: cursor))
            #expect(page.isGap && page.facts.isEmpty)
        }
        let other = try #require(LiveStream(time: clock).page(LiveFilter(app: "1"), after: cursor))
        #expect(other.isGap)
        for text in ["", "x", "1-2", "1-2-3-4", "-1-0-0", "\(UInt64.max)-0-0"] {
            #expect(stream.page(LiveFilter(app: "1"), after: text)?.isGap == true)
        }
    }

    @Test("another filter takes the listener's place, and only the last question of a listener waits")
    func questions() throws {
        let stream = stream()
        let all = LiveFilter(app: "1")
        var page = try #require(stream.page(all, after: nil))
        for number in 0..<2 * LiveStream.listenersMax {
            page = try #require(stream.page(LiveFilter(app: "1", user: "u\(number)"), after: page.cursor), "the listener has one place")
        }
        let first = try #require(stream.page(all, after: page.cursor))
        let second = try #require(stream.page(all, after: first.cursor))
        join(stream)
        #expect(stream.more(since: first, app: "1") == nil, "it has asked again")
        #expect(stream.more(since: second, app: "2") == nil)
        #expect(stream.more(since: second, app: "1")?.facts.count == 1)
        clock.advance(seconds: LiveStream.silenceMax / 1000 + 1)
        join(stream)
        #expect(stream.more(since: second, app: "1") == nil && !stream.isWatched, "a question that waits keeps no listener")
    }

    @Test("what a loop left out instead of waiting is counted")
    func missed() throws {
        let stream = stream()
        let (all, own) = (LiveFilter(app: "1"), LiveFilter(app: "1", user: "u"))
        let begin = try #require(stream.page(all, after: nil)), quiet = try #require(stream.page(own, after: nil))
        @Sendable func event() {
            stream.noteWithoutWaiting(app: "1", .event, channel: "c", user: nil) {
                .event(name: "n", id: nil, policy: nil, recipients: nil, sequence: nil)
            }
        }
        event()
        stream.note(app: "1", .leave, channel: "c", user: nil) {
            let done = DispatchSemaphore(value: 0)
            DispatchQueue.global().async {
                event()
                done.signal()
            }
            done.wait()
            return .leave(socket: nil)
        }
        let page = try #require(stream.page(all, after: begin.cursor))
        #expect(page.facts.map(\.detail.kind) == [.event, .leave] && page.skipped == 1)
        #expect(stream.page(own, after: quiet.cursor)?.skipped == 0)
    }

    @Test("more than 200 a second are counted and left out, for each listener apart")
    func sampling() throws {
        let stream = stream()
        let (all, quiet) = (LiveFilter(app: "1"), LiveFilter(app: "1", user: "quiet"))
        let first = try #require(stream.page(all, after: nil)), own = try #require(stream.page(quiet, after: nil))
        for _ in 0..<300 { join(stream) }
        join(stream, user: "quiet")
        let page = try #require(stream.page(all, after: first.cursor))
        #expect(page.facts.count == 200 && page.skipped == 101)
        #expect(stream.page(quiet, after: own.cursor)?.facts.count == 1)
        clock.advance(seconds: 1)
        join(stream)
        let next = try #require(stream.page(all, after: page.cursor))
        #expect(next.facts.count == 1 && next.skipped == 0)
    }

    @Test("keeps a bounded number of facts, and says when some are gone")
    func bounds() throws {
        let stream = stream()
        let filter = LiveFilter(app: "1")
        var page = try #require(stream.page(filter, after: nil))
        for _ in 0..<20 {
            clock.advance(seconds: 1)
            for _ in 0..<100 { join(stream) }
        }
        page = try #require(stream.page(filter, after: page.cursor))
        #expect(page.facts.count == 500 && page.isGap && page.skipped == 0)
        #expect(stream.page(filter, after: page.cursor)?.isGap == false)
    }

    @Test("a 33rd listener is refused until one has stopped asking")
    func listeners() throws {
        let stream = stream()
        for _ in 0..<LiveStream.listenersMax { #expect(stream.page(LiveFilter(app: "1"), after: nil) != nil) }
        #expect(stream.page(LiveFilter(app: "1"), after: nil) == nil)
        clock.advance(seconds: LiveStream.silenceMax / 1000 + 1)
        #expect(stream.page(LiveFilter(app: "1"), after: nil) != nil)
    }

    @Test("tells of an event its decisions, and of its receipts and pushes whose they are")
    func events() throws {
        let stream = stream()
        let (all, one) = (LiveFilter(app: "1"), LiveFilter(app: "1", channel: "c", user: "u9"))
        let begin = try #require(stream.page(all, after: nil)), own = try #require(stream.page(one, after: nil))
        let event = EventRecord(
            id: "e", app: "1", channel: "c", name: "asked", data: "{}", policy: .critical, committedAt: 1_000, expiresAt: 9_000)
        let note = RecipientNote(state: .live, choice: .awaited)
        let snapshot = RecipientSnapshot(users: (0..<300).map { "u\($0)" })
        stream.note(EventCommit(event, recipients: RecipientOpening(snapshot: snapshot, note: note)), sequence: 7)
        stream.noteReceipts(of: "e", places: [9, 300], at: 2_500)
        stream.noteReceipts(of: "unknown", places: [0], at: 2_500)
        var push = PushRecord(nid: "n", event: "e", app: "1", user: "u9", device: "d", state: .accepted, reason: "", dueAt: 0)
        push.attempt = DeliveryAttempt(number: 2, startedAt: 1, endedAt: 2, answer: "accepted")
        stream.note([push])
        let page = try #require(stream.page(all, after: begin.cursor))
        #expect(page.facts.first?.detail == .event(name: "asked", id: "e", policy: .critical, recipients: 300, sequence: 7))
        #expect(page.facts.count == 200 && page.skipped == 103)
        #expect(
            stream.page(one, after: own.cursor)?.facts.map(\.detail) == [
                .decision(event: "e", note), .receipt(event: "e", after: 1_500),
                .push(event: "e", nid: "n", device: "d", .accepted, answer: "accepted", attempt: 2),
            ])
    }
}
