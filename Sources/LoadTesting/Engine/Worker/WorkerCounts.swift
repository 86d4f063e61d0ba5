/// Counts of one worker so far; a plain value passed to the run.
struct WorkerCounts: Sendable {
    /// Counts of one address, which `opened`, `failed` and `closedByServer` are the sums of.
    struct Node: Sendable {
        var opened: UInt64 = 0
        var failed: UInt64 = 0
        var closedByServer: UInt64 = 0
    }

    var nodes: [Node]
    /// Connections in their opening, without publishers.
    var opening = 0
    var open = 0
    /// Connections that completed their opening, ever.
    var opened: UInt64 = 0
    /// Connections that could not be opened: refused, closed or answered otherwise.
    var failed: UInt64 = 0
    /// Cause of the first failure.
    var failure: String?
    /// The last message to a connection that awaits another one.
    var unawaited: String?
    /// Open connections ended by the server, by the code of its close frame; 0: without one.
    var closedByServer: [Int: UInt64] = [:]
    var bytes: UInt64 = 0
    var reads: UInt64 = 0
    var pings: UInt64 = 0
    /// Messages without a mark to open connections.
    var unmarked: UInt64 = 0
    /// CPU time of this thread, in nanoseconds.
    var cpu: UInt64 = 0

    init(nodes: Int = 1) { self.nodes = Array(repeating: Node(), count: nodes) }

    mutating func add(_ other: WorkerCounts) {
        for place in nodes.indices {
            nodes[place].opened += other.nodes[place].opened
            nodes[place].failed += other.nodes[place].failed
            nodes[place].closedByServer += other.nodes[place].closedByServer
        }
        opening += other.opening
        open += other.open
        opened += other.opened
        failed += other.failed
        failure = failure ?? other.failure
        unawaited = unawaited ?? other.unawaited
        closedByServer.merge(other.closedByServer, uniquingKeysWith: +)
        bytes += other.bytes
        reads += other.reads
        pings += other.pings
        unmarked += other.unmarked
        cpu += other.cpu
    }
}
