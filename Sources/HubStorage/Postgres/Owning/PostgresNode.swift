import HubCore
import Synchronization

/// This process among those that use the database: beats, looks at the others, and takes and gives partitions.
///
/// Every transaction of the writer begins with the fence: it fails when a partition of this node has another owner or a later epoch.
final class PostgresNode: Sendable {
    private struct State {
        var book: LeaseBook
        var isClosed = false
        /// The node has handed everything over: it beats, takes and decides no more.
        var hasLeft = false
        /// Partitions may have become free since the last look.
        var isNudged = false
        var sleep: Task<Void, Never>?
        var beats: UInt64 = 0
        var failedBeats: UInt64 = 0
        var takeovers: UInt64 = 0
        var hears: @Sendable () -> Bool = { true }
        var giveBack: @Sendable ([Int32]) async throws -> Void = { _ in }
        /// Partitions that are being given back. The server says of them that they are this node's.
        var giving: [Int32] = []
        /// When that ended. Looks that were sent before do not know of it.
        var givenAt: Int64?
    }

    let number: Int64
    private let link: PostgresLink
    /// Counts from here, and goes on while the machine sleeps.
    private let origin = ContinuousClock.now
    private let state: Mutex<State>

    init(number: Int64, isAlone: Bool, link: PostgresLink) {
        self.number = number
        self.link = link
        state = Mutex(State(book: LeaseBook(me: number, isAlone: isAlone)))
    }

    /// Partitions with their epochs that this node owns.
    var owned: [Int32: Int64] { state.withLock { $0.book.owned } }
    /// Whether the partition is this node's, and was confirmed lately.
    func owns(_ partition: Int32) -> Bool { state.withLock { $0.book.owned[partition] != nil && $0.book.mayAct(at: monotonic) } }
    /// Partitions that are this node's, and were confirmed lately.
    var confirmed: Set<Int32> { state.withLock { $0.book.mayAct(at: monotonic) ? Set($0.book.owned.keys) : [] } }
    /// Refuses work about partitions that are not this node's.
    func require(_ partitions: Set<Int32>) throws(PostgresFailure) {
        guard partitions.isSubset(of: owned.keys) else {
            throw .refused(state: PostgresFailure.fenced, message: "another node decides about the channel by now")
        }
    }
    /// Whether the node takes no part, because it does not hear itself through the backplane while another node does.
    var isCutOff: Bool { state.withLock { $0.book.isCutOff } }
    /// Asks `hears` before each beat from now on.
    func listen(_ hears: @escaping @Sendable () -> Bool) { state.withLock { $0.hears = hears } }
    /// Gives partitions back by `give` from now on, which is to end what the node has under way first.
    func giveBack(by give: @escaping @Sendable ([Int32]) async throws -> Void) { state.withLock { $0.giveBack = give } }
    /// Whether another node's beat moved at the last look.
    var seesAnother: Bool { state.withLock { $0.book.seesAnother } }

    /// Counters of beats and partitions, for metrics.
    var figures: PostgresFigures {
        state.withLock { state in
            var figures = PostgresFigures()
            figures.process = number
            figures.owned = state.book.owned
            figures.others = state.book.living.subtracting([number]).count
            (figures.beats, figures.failedBeats, figures.takeovers) = (state.beats, state.failedBeats, state.takeovers)
            figures.sinceBeat = state.book.sinceBeat(at: monotonic)
            return figures
        }
    }

    /// The first statement of every transaction that writes.
    /// - Throws: `PostgresFailure.refused` if what this node owns has run out, or is not what it needs.
    func fence() throws(PostgresFailure) -> PostgresStatement {
        let (mayAct, owned) = state.withLock { state -> (Bool, [(key: Int32, value: Int64)]) in
            if state.hasLeft { return (true, []) }
            let isWhole = !state.book.isAlone || state.book.owned.count == LeaseBook.partitionCount
            return (isWhole && state.book.mayAct(at: monotonic), state.book.owned.sorted { $0.key < $1.key })
        }
        // A node that owns nothing yet stores people and devices all the same, and `require` keeps it from deciding about channels.
        guard mayAct else {
            throw .refused(state: PostgresFailure.fenced, message: "the server has not confirmed lately what this hub owns")
        }
        return PostgresStatement(
            "SELECT tandem.fence($1, $2, $3)",
            [.ints(owned.map { Int64($0.key) }), .ints(owned.map(\.value)), .int(number)])
    }

    private var monotonic: Int64 { Self.milliseconds(since: origin) }

    private static func milliseconds(since origin: ContinuousClock.Instant) -> Int64 {
        let (seconds, attoseconds) = (ContinuousClock.now - origin).components
        return seconds * 1_000 + attoseconds / 1_000_000_000_000_000
    }

    /// Beats, looks and acts once. Call it every `LeaseBook.lookEvery` milliseconds.
    /// - Returns: the partitions taken.
    @discardableResult
    func look() async throws -> [Int32] {
        let sentAt = monotonic
        let hears = state.withLock(\.hears)()
        let (isDeaf, isCutOff) = state.withLock { state in
            state.book.note(hears: hears)
            return (state.book.isDeaf, state.book.isCutOff)
        }
        let actions: [LeaseBook.Action]
        do {
            let look = try await link.run(within: .milliseconds(LeaseBook.lookMax)) { [self] connection, deadline in
                let beat = [PostgresValue.int(number), .bool(isDeaf), .bool(isCutOff)]
                return try self.hasEnded ? nil : Self.look(number, beat: beat, sentAt: sentAt, since: origin, connection, deadline)
            }
            guard let look else { return [] }
            actions = state.withLock { state in
                state.beats += 1
                if state.isClosed || state.hasLeft { return [] }
                if let givenAt = state.givenAt, sentAt > givenAt { (state.giving, state.givenAt) = ([], nil) }
                let actions = state.book.take(look)
                state.book.gives(state.giving)
                return actions
            }
        } catch {
            state.withLock { state in
                state.failedBeats += 1
                state.book.failed()
            }
            throw error
        }
        return try await carryOut(actions)
    }

    /// Beats for the first time. A look of a start may take long: other nodes may start beside this one.
    func join() async throws {
        for _ in 1..<Self.looksMax {
            if (try? await look()) != nil { return }
        }
        try await look()
    }

    /// Waits until all partitions belong to this node.
    /// - Throws: `StorageError.Code.inUse` if another node's beat still moves after six seconds: without a backplane there is one hub.
    func ownAll() async throws {
        for place in 0..<Self.looksMax {
            try await look()
            if owned.count == Int(LeaseBook.partitionCount) { return }
            if place > 0 { try await Task.sleep(for: .milliseconds(LeaseBook.lookEvery)) }
        }
        throw StorageError(
            .inUse, "another hub works on this database; stop it, or give this one a database of its own: several need a backplane")
    }

    /// Looks of a start: six seconds of others, and those that take.
    private static let looksMax = 16

    /// Beats until the node is closed or the task is cancelled.
    func run() async {
        while !Task.isCancelled, !hasEnded {
            let sleep = state.withLock { state -> Task<Void, Never>? in
                defer { state.isNudged = false }
                if state.isNudged { return nil }
                // A nudge ends it early.
                state.sleep = Task { try? await Tick.wait(.milliseconds(LeaseBook.lookEvery)) }
                return state.sleep
            }
            await sleep?.value
            state.withLock { $0.isNudged = false }
            // A failed look is counted by the book, and the next one tells.
            _ = try? await look()
        }
    }

    /// Has the node look at once: partitions may have become free.
    func nudge() {
        state.withLock { state in
            state.isNudged = true
            state.sleep?.cancel()
        }
    }

    /// Name under which PostgreSQL tells the other nodes that partitions are free.
    static let freed = "tandem_lease"
    /// Time for the other nodes to take what was handed over.
    private static let takenWithin: Duration = .seconds(1)

    /// Gives all partitions to the other nodes, tells them, and waits until they have taken them, for a second at most. From here on the
    /// node stores people and devices, and decides nothing. A node that is alone keeps everything until `close`.
    /// - Throws: `PostgresFailure` if the server does not say that it has given them back.
    func handOver() async throws {
        let hasOthers = state.withLock { state in
            guard !state.book.living.subtracting([number]).isEmpty, !state.isClosed else { return false }
            state.hasLeft = true
            state.book.gives(Array(state.book.owned.keys))
            return true
        }
        guard hasOthers else { return }
        try await link.run { [number] connection, deadline in
            _ = try connection.run(
                [
                    PostgresStatement("UPDATE tandem.lease SET owner = 0 WHERE owner = $1", [.int(number)]),
                    PostgresStatement("DELETE FROM tandem.node WHERE number = $1", [.int(number)]),
                    PostgresStatement("SELECT pg_notify('\(Self.freed)', '')"),
                ], deadline: deadline)
        }
        let end = ContinuousClock.now + Self.takenWithin
        while ContinuousClock.now < end {
            let isTaken = try await link.run { connection, deadline in
                try connection.run(
                    [PostgresStatement("SELECT NOT EXISTS (SELECT FROM tandem.lease WHERE owner = 0) AS taken")], deadline: deadline
                )[0].first?.bool("taken") == true
            }
            if isTaken { return }
            try await Task.sleep(for: .milliseconds(25))
        }
    }

    /// Whether the node beats and takes no more. Asked on the link's thread, so nothing comes behind the statements of `close`.
    private var hasEnded: Bool { state.withLock { $0.isClosed || $0.hasLeft } }

    /// Gives everything back, so that a successor needs not wait.
    func close() async {
        let isFirst = state.withLock { state in
            defer { state.isClosed = true }
            return !state.isClosed
        }
        guard isFirst else { return }
        _ = try? await link.run { [number] connection, deadline in
            _ = try connection.run(
                [
                    PostgresStatement("UPDATE tandem.lease SET owner = 0 WHERE owner = $1", [.int(number)]),
                    PostgresStatement("DELETE FROM tandem.node WHERE number = $1", [.int(number)]),
                ], deadline: deadline)
        }
        await link.close()
    }

    private static func look(
        _ number: Int64, beat: [PostgresValue], sentAt: Int64, since origin: ContinuousClock.Instant, _ connection: PostgresConnection,
        _ deadline: ContinuousClock.Instant
    ) throws -> LeaseBook.Look {
        let nodes = try connection.run(
            [
                PostgresStatement(
                    """
                    WITH beat AS (
                      INSERT INTO tandem.node AS known (number, beat, is_deaf, is_cut_off) VALUES ($1, 1, $2, $3)
                      ON CONFLICT (number) DO UPDATE SET beat = known.beat + 1, is_deaf = $2, is_cut_off = $3
                      RETURNING number, beat, is_deaf, is_cut_off),
                    nodes AS (
                      SELECT * FROM beat
                      UNION ALL SELECT number, beat, is_deaf, is_cut_off FROM tandem.node WHERE number <> $1)
                    SELECT n.number, n.beat, n.is_deaf, n.is_cut_off, pg_postmaster_start_time()::text AS start,
                      (extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) * 1000)::bigint AS up,
                      pg_backend_pid() AS backend,
                      EXISTS (SELECT FROM pg_stat_activity a WHERE a.application_name LIKE 'tandem ' || n.number || ' %') AS is_connected,
                      (SELECT string_agg(concat_ws(' ', partition, owner, epoch), ',') FROM tandem.lease) AS leases
                    FROM nodes n
                    """, beat)
            ], deadline: deadline)[0]
        guard let first = nodes.first else { throw PostgresFailure.lost("its own beat cannot be seen") }
        // PgBouncer gives connections process numbers of its own.
        let isDirect = first.int("backend") == Int64(connection.backend)
        return LeaseBook.Look(
            nodes: Dictionary(nodes.map { ($0.int("number"), $0.int("beat")) }, uniquingKeysWith: { $1 }),
            deaf: Set(nodes.compactMap { $0.bool("is_deaf") ? $0.int("number") : nil }),
            cutOff: Set(nodes.compactMap { $0.bool("is_cut_off") ? $0.int("number") : nil }),
            leases: leases(first.text("leases")),
            unconnected: isDirect ? Set(nodes.compactMap { $0.bool("is_connected") ? nil : $0.int("number") }) : nil,
            serverStart: first.text("start"), serverUp: first.int("up"), sentAt: sentAt, answeredAt: milliseconds(since: origin))
    }

    /// Leases by partition: numbers of partition, owner and epoch, by blanks, and commas between leases.
    private static func leases(_ text: String) -> [Int32: LeaseBook.Look.Lease] {
        var leases: [Int32: LeaseBook.Look.Lease] = [:]
        for lease in text.split(separator: ",") {
            let numbers = lease.split(separator: " ").compactMap { Int64($0) }
            guard numbers.count == 3 else { preconditionFailure("a lease is told as \(lease)") }
            leases[Int32(clamping: numbers[0])] = LeaseBook.Look.Lease(owner: numbers[1], epoch: numbers[2])
        }
        return leases
    }

    /// Nobody waits for it: beats go on. A failure is tried again at the next look.
    private func giveBack(_ actions: [LeaseBook.Action]) {
        for case .giveBack(let partitions) in actions {
            let give = state.withLock { state -> (@Sendable ([Int32]) async throws -> Void)? in
                if state.isClosed || state.hasLeft || !state.giving.isEmpty { return nil }
                state.book.gives(partitions)
                state.giving = partitions
                return state.giveBack
            }
            guard let give else { continue }
            Task {
                try? await give(partitions)
                state.withLock { $0.givenAt = monotonic }
            }
        }
    }

    private func carryOut(_ actions: [LeaseBook.Action]) async throws -> [Int32] {
        if actions.isEmpty { return [] }
        giveBack(actions)
        return try await link.run(within: .seconds(3)) { [self] connection, deadline in
            if hasEnded { return [] }
            // A free partition has no old owner whose transactions could still be under way.
            let free = actions.compactMap { if case .take(let partition, from: 0) = $0 { Int64(partition) } else { nil } }
            var taken: [Int32: Int64] = [:]
            // Whatever happens to the rest, what was taken is owned.
            defer { state.withLock { $0.book.took(taken) } }
            if !free.isEmpty {
                let rows = try connection.run(
                    [
                        PostgresStatement(
                            """
                            UPDATE tandem.lease SET owner = $1, epoch = \(Self.nextEpoch) WHERE partition = ANY($2) AND owner = 0
                            RETURNING partition, epoch
                            """, [.int(number), .ints(free)])
                    ], deadline: deadline)
                for row in rows[0].map({ (Int32(clamping: $0.int("partition")), $0.int("epoch")) }) { taken[row.0] = row.1 }
                // Another node was faster with some of them, and has left others.
                if taken.count < free.count { nudge() }
            }
            for action in actions {
                switch action {
                case .take(_, from: 0): break
                case .take(let partition, let owner):
                    if let epoch = try Self.take(partition, from: owner, for: number, connection, deadline) {
                        taken[partition] = epoch
                        state.withLock { $0.takeovers += 1 }
                    }
                case .giveBack: break
                case .forget(let node):
                    _ = try connection.run(
                        [PostgresStatement("DELETE FROM tandem.node WHERE number = $1", [.int(node)])], deadline: deadline)
                }
            }
            return taken.keys.sorted()
        }
    }

    /// Takes one partition in a transaction of its own. A backend of the owner of before that was stopped in the middle of a transaction
    /// holds its lock for ever: it is ended.
    /// - Returns: the new epoch; nil if the partition was not to be had.
    private static func take(
        _ partition: Int32, from owner: Int64, for number: Int64, _ connection: PostgresConnection, _ deadline: ContinuousClock.Instant
    ) throws -> Int64? {
        for _ in 0..<3 {
            let tx = PostgresTransaction(connection, deadline: deadline)
            tx.queue("BEGIN ISOLATION LEVEL READ COMMITTED")
            tx.queue("SET LOCAL lock_timeout = '200ms'")
            do {
                let rows = try tx.query(
                    "UPDATE tandem.lease SET owner = $1, epoch = \(nextEpoch) WHERE partition = $2 AND owner = $3 RETURNING epoch",
                    [.int(number), .int(Int64(partition)), .int(owner)])
                try tx.commit()
                return rows.first?.int("epoch")
            } catch let failure as PostgresFailure where failure.state == "55P03" {
                try tx.rollBack()
                try endBlockers(of: owner, connection, deadline)
            }
        }
        return nil
    }

    /// Epochs rise also after a failover that lost the last ones.
    private static let nextEpoch = "greatest(epoch + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)"

    private static func endBlockers(of owner: Int64, _ connection: PostgresConnection, _ deadline: ContinuousClock.Instant) throws {
        _ = try connection.run(
            [
                PostgresStatement(
                    """
                    SELECT pg_terminate_backend(pid, 500) FROM pg_stat_activity
                    WHERE pid IN (SELECT l.pid FROM pg_locks l WHERE l.relation = 'tandem.lease'::regclass AND l.mode = 'RowShareLock')
                      AND application_name LIKE 'tandem ' || $1 || ' %'
                    """, [.text(String(owner))])
            ], deadline: deadline)
    }
}
