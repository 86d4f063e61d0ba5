import Foundation
import HubCore
import HubCrypto
import HubDelivery
import HubHTTPClient
import HubStorage
import HubTesting
import HubWebhooks
import Logging
import PusherProtocol
import Synchronization
import Testing

/// Against a real server on this machine; times are the system's.
@Suite("WebhookService")
struct WebhookServiceTests {
    func service(
        _ endpoints: [WebhookEndpoint], store: any WebhookStore = MemoryWebhookStore(),
        attemptTimeout: Duration = .seconds(4) * SlowBuild.factor, time: any TimeSource = ShiftedTime(),
        inboxBytesMax: Int = WebhookLimits.inboxBytesMax, logger: Logger = quiet, owns: (@Sendable (String) -> Bool)? = nil
    ) throws -> WebhookService {
        try WebhookService(
            endpoints: endpoints, store: store, time: time, logger: logger, inboxBytesMax: inboxBytesMax,
            attemptTimeout: attemptTimeout, owns: owns)
    }

    static let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    private var quiet: Logger { Self.quiet }

    /// The names of the events in a body, joined with their channels.
    private func events(_ request: LocalHTTPServer.Request) throws -> [String] {
        let body = try #require(try JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any])
        let events = try #require(body["events"] as? [[String: Any]])
        return events.map { "\($0["name"] ?? "") \($0["channel"] ?? "")" }
    }

    /// The events of all requests; none, should a body be unreadable.
    func told(_ server: LocalHTTPServer) -> [String] { (try? server.requests.flatMap(events)) ?? [] }

    private func isSigned(_ request: LocalHTTPServer.Request) -> Bool {
        let signature = Hex.encode(HMAC.sha256(key: Array(WebhookEndpoint.sampleSecret.utf8), message: request.body))
        return request.headers["x-pusher-signature"] == signature && request.headers["x-pusher-key"] == WebhookEndpoint.sampleKey
            && request.headers["content-type"] == "application/json" && request.method == "POST"
    }

    @Test("C27: what is sent is what was signed, with exactly these headers, and it leaves the store when it was taken")
    func delivers() async throws {
        let store = MemoryWebhookStore()
        let server = try LocalHTTPServer { _ in
            // Durable before its first attempt.
            .answer(store.batches.isEmpty ? 500 : 204)
        }
        defer { server.stop() }
        let service = try service([.sample(server.url + "/hook?x=1")], store: store)
        service.report([
            try .fact("my-channel", .occupied), try .fact("#server-to-user-ada", .occupied),
            try .clientEvent("private-a", data: "{\"ä\":\"\\n\"}"),
        ])
        #expect(await eventually { !server.requests.isEmpty && store.batches.isEmpty })
        let requests = server.requests
        #expect(requests.count == 1 && requests.allSatisfy(isSigned) && requests.first?.path == "/hook?x=1")
        #expect(try events(requests[0]) == ["channel_occupied my-channel", "client_event private-a"])
        let counters = await service.counters
        #expect(counters.batchesDelivered == 1 && counters.attempts == 1 && counters.attemptsFailed == 0)
        // One write for the batch, one to delete it.
        #expect(store.writes == 2)
        await service.stop()
    }

    @Test("twenty events fill a request, and each endpoint gets its own app's events of its kinds")
    func batches() async throws {
        let server = try LocalHTTPServer { _ in .answer(200) }
        defer { server.stop() }
        let service = try service([
            .sample(server.url + "/all"), .sample(server.url + "/misses", kinds: .cacheMiss),
            .sample(server.url + "/other", app: 1),
        ])
        service.report(try (0..<45).map { try .clientEvent("private-\($0)") } + [.fact("cache-x", .cacheMiss)])
        service.report([try .fact("z", .occupied, app: 1), try .fact("nobody", .occupied, app: 2)])
        try #require(await eventually { server.requests.count == 5 })
        let all = try server.requests.filter { $0.path == "/all" }.map(events)
        #expect(all.map(\.count) == [20, 20, 6])
        #expect(all.flatMap { $0 } == (0..<45).map { "client_event private-\($0)" } + ["cache_miss cache-x"])
        #expect(try server.requests.filter { $0.path == "/misses" }.map(events) == [["cache_miss cache-x"]])
        #expect(try server.requests.filter { $0.path == "/other" }.map(events) == [["channel_occupied z"]])
        await service.stop()
    }

    @Test("events of encrypted channels come in requests of their own, each channel's in their order")
    func encrypted() async throws {
        let server = try LocalHTTPServer { _ in .answer(200) }
        defer { server.stop() }
        let service = try service([.sample(server.url)])
        service.report([
            try .fact("private-encrypted-a", .occupied), try .fact("presence-x", .occupied),
            try .fact("private-encrypted-cache-b", .occupied),
            try .fact("presence-x", .memberAdded(user: "u")), try .clientEvent("private-encrypted-a"),
        ])
        try #require(await eventually { server.requests.count == 2 })
        let requests = try server.requests.map(events)
        #expect(requests.contains(["channel_occupied presence-x", "member_added presence-x"]))
        #expect(
            requests.contains([
                "channel_occupied private-encrypted-a", "channel_occupied private-encrypted-cache-b", "client_event private-encrypted-a",
            ]))
        await service.stop()
    }

    @Test(
        "C27: after a 500, a redirect or a closed connection the same bytes come again, in order",
        arguments: [
            LocalHTTPServer.Reply.answer(500), .answer(404), .answer(503), .answer(302, headers: [("Location", "/elsewhere")]), .close,
        ])
    func retries(failure: LocalHTTPServer.Reply) async throws {
        let isFirst = Mutex(true)
        let server = try LocalHTTPServer { _ in
            isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst ? failure : .answer(200)
            }
        }
        defer { server.stop() }
        let store = MemoryWebhookStore()
        let service = try service([.sample(server.url + "/hook")], store: store)
        service.report([try .fact("a", .occupied)])
        #expect(await eventually { !server.requests.isEmpty })
        // Comes while the first one waits for its second attempt.
        service.report(try (0..<20).map { try .clientEvent("private-\($0)") })
        try #require(await eventually { server.requests.count == 3 && store.batches.isEmpty })
        let requests = server.requests
        #expect(requests.map(\.path) == ["/hook", "/hook", "/hook"] && requests.allSatisfy(isSigned))
        #expect(requests[0].body == requests[1].body && requests[2].body != requests[0].body)
        #expect(await service.counters.attemptsFailed == 1)
        await service.stop()
    }

    @Test("an answer that comes too late is a failure")
    func slow() async throws {
        let count = Mutex(0)
        let server = try LocalHTTPServer { _ in
            count.withLock { $0 += 1 }
            return count.withLock { $0 } == 1 ? .silence : .answer(200)
        }
        defer { server.stop() }
        let service = try service([.sample(server.url)], attemptTimeout: .milliseconds(200))
        service.report([try .fact("a", .occupied)])
        try #require(await eventually { server.requests.count == 2 })
        #expect(server.requests[0].body == server.requests[1].body)
        await service.stop()
    }

    @Test("endpoints that are silent, throttle or refuse delay nobody else, even at the same address")
    func isolation() async throws {
        let server = try LocalHTTPServer { request in
            switch request.path {
            case "/silent": .silence
            case "/throttles": .answer(503)
            case "/refuses": .answer(400)
            default: .answer(200)
            }
        }
        defer { server.stop() }
        // Accepts connections, by the kernel's hand, and never reads.
        let blackHole = try BlackHole()
        let store = MemoryWebhookStore()
        let service = try service(
            [
                .sample(server.url + "/silent"), .sample(blackHole.url), .sample(server.url + "/throttles"),
                .sample(server.url + "/refuses"), .sample(server.url + "/works"),
            ], store: store, attemptTimeout: .seconds(600))
        for round in 1...10 {
            service.report([try .fact("channel-\(round)", .occupied)])
            let isDelivered = await eventually { server.requests.filter { $0.path == "/works" }.count == round }
            #expect(isDelivered)
        }
        #expect(await eventually { server.requests.contains { $0.path == "/silent" } })
        #expect(server.requests.filter { $0.path == "/silent" }.count == 1)
        #expect(store.batches.filter { $0.url.hasSuffix("/works") }.count <= 1)
        #expect(store.batches.filter { $0.url == blackHole.url }.count == 10)
        // Attempts that hang do not hold up the end.
        let begin = ContinuousClock.now
        await service.stop(grace: .milliseconds(100))
        #expect(begin.duration(to: .now) < .seconds(20))
        #expect(store.batches.filter { $0.url == blackHole.url }.count == 10)
    }

    @Test("after a restart stored batches are sent with their bytes, key and signature; old and homeless ones are dropped")
    func restart() async throws {
        let server = try LocalHTTPServer { _ in .answer(200) }
        defer { server.stop() }
        let time = ShiftedTime()
        func batch(_ text: String, _ age: Int64, _ path: String = "/hook") -> WebhookBatch {
            WebhookBatch(
                app: "1", url: server.url + path, key: "old-key", signature: "old-signature",
                timeMilliseconds: time.wallMilliseconds - age, body: Array(text.utf8))
        }
        let store = MemoryWebhookStore([
            batch("too old", 300_000), batch("first", 200_000), batch("elsewhere", 100_000, "/gone"), batch("second", 100_000),
        ])
        let log = LogLines()
        let service = try service([.sample(server.url + "/hook")], store: store, time: time, logger: log.logger)
        try await service.resume()
        try #require(await eventually { server.requests.count == 2 && store.batches.isEmpty })
        #expect(server.requests.map(\.text) == ["first", "second"])
        #expect(
            server.requests.allSatisfy {
                $0.headers["x-pusher-key"] == "old-key" && $0.headers["x-pusher-signature"] == "old-signature"
            })
        #expect(await service.counters.batchesExpired == 1)
        #expect(log.lines.contains { $0.contains("more than five minutes old") })
        #expect(log.lines.contains { $0.contains("no longer configured") })
        await service.stop()
    }

    @Test("the end makes batches of all that waits, removals included, and delivers what it can")
    func stopDelivers() async throws {
        let server = try LocalHTTPServer { _ in .answer(200) }
        defer { server.stop() }
        let store = MemoryWebhookStore()
        let service = try service([.sample(server.url)], store: store)
        service.report([
            try .fact("presence-a", .memberRemoved(user: "ada")), try .fact("presence-a", .vacated), try .fact("b", .occupied),
        ])
        // It ends with the last answer; the limit is for machines on which that takes its time.
        await service.stop(grace: .seconds(120) * SlowBuild.factor)
        #expect(try server.requests.map(events) == [["channel_occupied b", "member_removed presence-a", "channel_vacated presence-a"]])
        // The end waits for its last write for two seconds only, which a busy machine may take to begin it.
        #expect(await eventually { store.batches.isEmpty })
        service.report([try .fact("c", .occupied)])
        #expect(server.requests.count == 1)
    }

    @Test("what cannot be delivered before the end is delivered unchanged after the next start")
    func stopAndRestart() async throws {
        let works = Mutex(false)
        let server = try LocalHTTPServer { _ in .answer(works.withLock { $0 } ? 200 : 500) }
        defer { server.stop() }
        let store = MemoryWebhookStore()
        let first = try service([.sample(server.url)], store: store)
        first.report([try .fact("a", .occupied)])
        #expect(await eventually { !server.requests.isEmpty })
        await first.stop(grace: .zero)
        let stored = store.batches
        #expect(stored.count == 1)
        works.withLock { $0 = true }
        let second = try service([.sample(server.url)], store: store)
        try await second.resume()
        #expect(await eventually { store.batches.isEmpty })
        #expect(
            server.requests.count >= 2 && server.requests.allSatisfy { $0.body == stored.first?.body }
                && server.requests.allSatisfy(isSigned))
        await second.stop()
    }

    @Test("a batch whose attempt failed survives SIGKILL, and its bytes stay the same")
    func killed() async throws {
        let works = Atomic(false)
        let server = try LocalHTTPServer { _ in .answer(works.load(ordering: .relaxed) ? 200 : 500) }
        defer { server.stop() }
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tandem-webhooks-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("t.db").path
        let url = server.url
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String, url = url as String] in
            let time = ShiftedTime()
            let store = try SQLiteStore(path: path, time: time)
            let service = try WebhookService(
                endpoints: [.sample(url)], store: store, time: time, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            service.report([try .fact("a", .occupied)])
            while await service.counters.attemptsFailed == 0 { try await Task.sleep(for: .milliseconds(5)) }
            _ = kill(getpid(), SIGKILL)
        }
        works.store(true, ordering: .relaxed)
        let time = ShiftedTime()
        let store = try SQLiteStore(path: path, time: time)
        let service = try service([.sample(url)], store: store, time: time)
        try await service.resume()
        try #require(await eventually { server.requests.count >= 2 })
        let requests = server.requests
        #expect(requests.allSatisfy { $0.body == requests[0].body && $0.headers == requests[0].headers } && requests.allSatisfy(isSigned))
        await service.stop()
        #expect(try await store.webhooks(after: 0, limit: 10) == [])
        try await store.close()
    }

    @Test("while the store fails nothing is sent and nothing is lost")
    func brokenStore() async throws {
        let server = try LocalHTTPServer { _ in .answer(200) }
        defer { server.stop() }
        let store = MemoryWebhookStore(failures: 2)
        let service = try service([.sample(server.url)], store: store)
        service.report([try .fact("a", .occupied)])
        try #require(await eventually { server.requests.count == 1 && store.batches.isEmpty })
        #expect(try server.requests.map(events) == [["channel_occupied a"]])
        await service.stop()
    }

    @Test("facts that do not fit are counted and named in the log, without their content")
    func overflow() async throws {
        let server = try LocalHTTPServer { _ in .answer(200) }
        defer { server.stop() }
        let log = LogLines()
        let service = try service([.sample(server.url)], inboxBytesMax: 1000, logger: log.logger)
        for _ in 0..<3 {
            service.report([
                try .fact("a", .subscriptionCount(1)), try .clientEvent("private-a", data: String(repeating: "s", count: 2000)),
            ])
        }
        // It ends with the last answer; the limit is for machines on which that takes its time.
        await service.stop(grace: .seconds(120) * SlowBuild.factor)
        #expect(await service.counters.factsDropped == 3)
        #expect((1...2).contains(log.lines.filter { $0.contains("facts dropped") }.count))
        #expect(!log.lines.contains { $0.contains("sss") || $0.contains(WebhookEndpoint.sampleSecret) || $0.contains("private-a") })
    }

    @Test("an endpoint that begins to fail, and one that works again, are each named once; no address and no body is")
    func logs() async throws {
        let failures = Mutex(2)
        let server = try LocalHTTPServer { _ in
            failures.withLock { left in
                left -= 1
                return .answer(left >= 0 ? 500 : 200)
            }
        }
        defer { server.stop() }
        let log = LogLines()
        let store = MemoryWebhookStore()
        let service = try service([.sample(server.url + "/path-secret")], store: store, logger: log.logger)
        service.report([try .fact("a-channel", .occupied)])
        try #require(await eventually { server.requests.count == 3 && store.batches.isEmpty })
        await service.stop()
        #expect(log.lines.filter { $0.contains("endpoint fails") && $0.contains("http 500") && $0.contains("127.0.0.1") }.count == 1)
        #expect(log.lines.filter { $0.contains("works again") }.count == 1)
        #expect(!log.lines.contains { $0.contains("path-secret") || $0.contains("a-channel") })
    }
}

/// An address that accepts connections and never answers.
private final class BlackHole: Sendable {
    private let listener: Int32
    let url: String

    init() throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                bind(listener, generic, length) == 0 && listen(listener, 8) == 0 && getsockname(listener, generic, &length) == 0
            }
        }
        guard isListening else { throw POSIXError(.EADDRINUSE) }
        url = "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))/"
    }

    deinit { close(listener) }
}
