/// What one worker has seen so far; a plain value that is handed to the run.
struct WorkerCounts: Sendable {
    /// Connections that wait for their opening, and those that are open; publishers are in neither.
    var opening = 0
    var open = 0
    /// Went through their opening, ever.
    var opened: UInt64 = 0
    /// Could not be opened: refused, ended or answered otherwise before they were open.
    var failed: UInt64 = 0
    /// Why the first of them failed.
    var failure: String?
    /// What was last said to a connection that waits for something else.
    var unawaited: String?
    /// Open ones that the server ended, by the code of its close frame; 0: without one.
    var closedByServer: [Int: UInt64] = [:]
    var bytes: UInt64 = 0
    var reads: UInt64 = 0
    var pings: UInt64 = 0
    /// Messages to open connections that hold no mark.
    var unmarked: UInt64 = 0
    /// Nanoseconds of this thread.
    var cpu: UInt64 = 0

    mutating func add(_ other: WorkerCounts) {
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
