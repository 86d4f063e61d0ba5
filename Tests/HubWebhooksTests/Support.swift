import HubCore
import HubCrypto
import HubDelivery
import HubTesting
import HubWebhooks
import Logging
import PusherProtocol
import Synchronization
import Testing

let secondNanoseconds: UInt64 = 1_000_000_000
let millisecondNanoseconds: UInt64 = 1_000_000

extension ChannelFact {
    /// - Throws: when the name is none.
    static func fact(_ channel: String, _ event: Event, app: Int = 0, at position: UInt64? = nil) throws -> ChannelFact {
        ChannelFact(
            app: app, channel: try #require(ChannelName(allowingServerToUser: channel)), event: event,
            position: position.map { StreamID(milliseconds: $0) })
    }

    static func clientEvent(_ channel: String, data: String = "{}", user: String? = nil, app: Int = 0) throws -> ChannelFact {
        try fact(
            channel, .clientEvent(name: "client-typing", data: data, socketID: SocketID(first: 12, second: 34), user: user), app: app)
    }
}

extension ChannelFact.Kinds {
    static let all: ChannelFact.Kinds = [
        .occupied, .vacated, .memberAdded, .memberRemoved, .clientEvent, .cacheMiss, .subscriptionCount,
    ]
}

extension WebhookEndpoint {
    static let sampleKey = "278d425bdf160c739803"
    static let sampleSecret = "7ad3773142a6692b25b8"

    static func sample(_ url: String, kinds: ChannelFact.Kinds = .all, app: Int = 0) -> WebhookEndpoint {
        WebhookEndpoint(app: app, appID: "\(app + 1)", key: sampleKey, secret: sampleSecret, url: url, kinds: kinds)
    }
}

extension WebhookBatch {
    static func sample(_ text: String = "x", timeMilliseconds: Int64 = ManualClock.start) -> WebhookBatch {
        WebhookBatch(
            app: "1", url: "http://h.example/x", key: "k", signature: "s", timeMilliseconds: timeMilliseconds, body: Array(text.utf8))
    }
}

/// The system's time, moved by a fixed difference.
final class ShiftedTime: TimeSource {
    private let clock = ContinuousClock()
    private let begin: ContinuousClock.Instant
    private let initialWall: Int64

    init(wall: Int64 = ManualClock.start) {
        begin = clock.now
        initialWall = wall
    }

    private var elapsed: Int64 {
        let (seconds, attoseconds) = begin.duration(to: clock.now).components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }

    var monotonicNanoseconds: UInt64 { UInt64(1_000_000_000 + elapsed) }
    var wallMilliseconds: Int64 { initialWall + elapsed / 1_000_000 }
}

/// Keeps webhooks in memory and remembers how it was used.
final class MemoryWebhookStore: WebhookStore {
    struct Broken: Error {}
    private struct State {
        var rows: [StoredWebhook] = []
        var marks: [String: WebhookMark] = [:]
        var lastRow: Int64 = 0
        var writes = 0
        var failuresLeft = 0
    }

    private let state = Mutex(State())
    private let held = Guarded<Int?>(nil)

    init(_ batches: [WebhookBatch] = [], failures: Int = 0) {
        state.withLock { state in
            state.failuresLeft = failures
            for batch in batches {
                state.lastRow += 1
                state.rows.append(StoredWebhook(row: state.lastRow, batch: batch))
            }
        }
    }

    var batches: [WebhookBatch] { state.withLock { $0.rows.map(\.batch) } }
    var writes: Int { state.withLock { $0.writes } }

    /// Writes wait from now on, until `release`.
    func hold() { held.withLock { $0 = 0 } }
    func release() { held.withLock { $0 = nil } }
    /// Writes that wait.
    var heldCount: Int { held.withLock { $0 } ?? 0 }

    func updateWebhooks(adding batches: [WebhookBatch], removing rows: [Int64], marks: [WebhookMark]) async throws -> [Int64] {
        held.withLock { if let count = $0 { $0 = count + 1 } }
        while held.withLock({ $0 != nil }) { try await Task.sleep(for: .milliseconds(1)) }
        return try state.withLock { state in
            if state.failuresLeft > 0 {
                state.failuresLeft -= 1
                throw Broken()
            }
            state.writes += 1
            for mark in marks { state.marks[mark.app] = mark }
            state.rows.removeAll { rows.contains($0.row) }
            return batches.map { batch in
                state.lastRow += 1
                state.rows.append(StoredWebhook(row: state.lastRow, batch: batch))
                return state.lastRow
            }
        }
    }

    func webhookMark(app: String) async throws -> WebhookMark? { state.withLock { $0.marks[app] } }

    func webhooks(after row: Int64, limit: Int) async throws -> [StoredWebhook] {
        state.withLock { Array($0.rows.filter { $0.row > row }.prefix(limit)) }
    }
}

/// The logged lines with their metadata.
final class LogLines: Sendable {
    private let kept = Mutex<[String]>([])
    var lines: [String] { kept.withLock { $0 } }

    var logger: Logger {
        var logger = Logger(label: "test") { _ in Handler(lines: self) }
        logger.logLevel = .trace
        return logger
    }

    private struct Handler: LogHandler {
        let lines: LogLines
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let all = metadata.merging(event.metadata ?? [:]) { $1 }
            lines.kept.withLock { $0.append("\(event.message) \(all)") }
        }
    }
}
