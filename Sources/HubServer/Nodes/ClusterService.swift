internal import HubAPI
internal import HubChannels
internal import HubCore
internal import HubDefinitions
internal import HubJSON
internal import HubScaleOut
internal import HubStorage
internal import Synchronization

/// Facts that this node tells of itself, and those of the others. Any thread.
final class ClusterService: ClusterPort {
    private let address: String
    private let directory: AppDirectory
    private let delivery: DeliveryService
    private let store: any HubStore
    private let startedAt: Int64
    /// Nil for a single node.
    private let backplane = Mutex<RedisBackplane?>(nil)

    /// Seconds in which something is expected back: a silent node sends a probe with the tick after a second.
    private static let probeSeconds = 1.25

    /// - Parameter address: where the node listens.
    init(address: String, directory: AppDirectory, delivery: DeliveryService, store: any HubStore, time: any TimeSource) {
        self.address = address
        self.directory = directory
        self.delivery = delivery
        self.store = store
        startedAt = time.wallMilliseconds
    }

    /// Call once, before the first question.
    func connect(_ backplane: RedisBackplane?) { self.backplane.withLock { $0 = backplane } }

    /// Members of `NodeListing.names`.
    var facts: [String: JSONValue] {
        let held = store.postgres.map { $0.owned.keys.sorted() } ?? Array(0..<Partition.count)
        let (lag, probeAge) = probes
        return [
            "address": .string(address), "version": .string(BuildInfo.version),
            "started_at": .string(Timestamp.iso8601(milliseconds: startedAt)),
            "connections": .int(Int64(directory.apps.reduce(0) { $0 + directory.connectionCount($1) })),
            "partitions": .int(Int64(held.count)), "partition_list": .string(Self.ranges(held)),
            "definitions": .string(delivery.currentDefinitions.fingerprint.hexDigits),
            "lag": lag.map { .double($0) } ?? .null, "probe_age": probeAge.map { .double($0) } ?? .null,
        ]
    }

    /// Seconds that a message takes back to this node, and seconds since the last one came back; the longest of all servers. A probe that
    /// is overdue counts with the time for which it has been.
    private var probes: (lag: Double?, age: Double?) {
        let streams = backplane.withLock { $0 }?.figures.servers.map(\.stream) ?? []
        let ages = streams.compactMap { $0.sinceProbe.map(Self.seconds) }
        guard !streams.isEmpty, ages.count == streams.count else { return (nil, nil) }
        let lags = zip(streams, ages).map { max($0.probe.map(Self.seconds) ?? 0, $1 - Self.probeSeconds) }
        return (lags.max().map(Self.rounded), ages.max().map(Self.rounded))
    }

    func nodes() async -> (nodes: [NodeListing], isComplete: Bool) {
        guard let backplane = backplane.withLock({ $0 }) else {
            return ([NodeListing(node: nil, isThis: true, sinceBeat: nil, facts: facts)], true)
        }
        let this = backplane.node
        var nodes: [NodeListing] = []
        var isComplete = true
        do throws(RedisFailure) {
            nodes = try await backplane.records().filter { $0.node != this }.map { record in
                let facts = (try? JSONValue(parsing: record.facts))?.objectValue ?? [:]
                let age = record.sinceBeat.map { Self.rounded(Double($0) / 1000) }
                return NodeListing(node: record.node.hexDigits, isThis: false, sinceBeat: age, facts: facts)
            }
        } catch {
            isComplete = false
        }
        nodes.append(NodeListing(node: this.hexDigits, isThis: true, sinceBeat: nil, facts: facts))
        return (nodes.sorted { ($0.node ?? "") < ($1.node ?? "") }, isComplete)
    }

    /// Ascending numbers as ranges: `0-3,7`.
    static func ranges(_ numbers: [Int32]) -> String {
        var ranges: [ClosedRange<Int32>] = []
        for number in numbers {
            if let last = ranges.last, last.upperBound + 1 == number {
                ranges[ranges.count - 1] = last.lowerBound...number
            } else {
                ranges.append(number...number)
            }
        }
        return ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ",")
    }

    private static func seconds(_ duration: Duration) -> Double {
        let (seconds, attoseconds) = duration.components
        return Double(seconds) + Double(attoseconds) / 1e18
    }

    /// To milliseconds.
    private static func rounded(_ seconds: Double) -> Double { (seconds * 1000).rounded() / 1000 }
}
