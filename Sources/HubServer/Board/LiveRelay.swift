internal import HubCore
internal import HubDelivery
internal import HubScaleOut
internal import Synchronization

/// Live tails over several nodes: each node notes facts for the listeners of the others, and leaves them on the board. The listener's node
/// takes them from there. Nothing goes through the stream, and nothing is left while nobody looks.
///
/// One task turns it; `missing` is asked on any thread.
final class LiveRelay: Sendable {
    /// A listener of another node.
    fileprivate struct Guest {
        /// The last word of its node. It changes while the node lives.
        var wanted: [UInt8]
        /// Milliseconds of the monotonic clock at which that changed last.
        var changedAt: Int64
        var cursor: String?
        var leftAt: Int64 = .min / 2
        /// Facts that could not be left.
        var lost: UInt64 = 0
    }

    fileprivate struct State {
        var guests: [String: Guest] = [:]
        /// Own listeners, as they stand on the board, since when, and who has left something for them when.
        var own: [String: (since: Int64, heard: [String: Int64])] = [:]
        var beat: UInt64 = 0
        var toldAt: Int64 = .min / 2
        var lookedAt: Int64 = .min / 2
    }

    /// Milliseconds between two looks at the board while nobody listens.
    static let lookEvery: Int64 = 500 - Tick.lateMax
    /// Milliseconds between two words of a node for a listener, also without a fact.
    static let wordEvery: Int64 = 1_000
    /// Milliseconds without a word after which a node counts as missing, and a listener whose node does not count on as gone.
    static let silenceMax: Int64 = 3_500
    /// Listeners of other nodes that are served. The others find this node among `missing`.
    static let guestsMax = 64

    private let stream: LiveStream
    private let board: @Sendable () -> NodeBoard
    private let me: @Sendable () -> String
    private let living: @Sendable () -> Set<String>
    private let time: any TimeSource
    private let state = Mutex(State())

    /// - Parameters:
    ///   - me: name of this run of the node.
    ///   - living: names of the nodes that live.
    init(
        _ stream: LiveStream, board: @escaping @Sendable () -> NodeBoard, me: @escaping @Sendable () -> String,
        living: @escaping @Sendable () -> Set<String>, time: any TimeSource
    ) {
        self.stream = stream
        self.board = board
        self.me = me
        self.living = living
        self.time = time
    }

    /// Nodes of which a listener is told nothing at the moment.
    func missing(of listener: UInt64) -> [String] {
        let (now, others) = (now, living().subtracting([me()]))
        return state.withLock { state in
            // Other nodes find a new listener within a second.
            guard let own = state.own["\(listener)"], now - own.since > Self.silenceMax else { return [] }
            return others.filter { now - own.heard[$0, default: own.since] > Self.silenceMax }.sorted()
        }
    }

    /// Whether somebody listens here, or listened anywhere at the last look.
    var isBusy: Bool { !stream.listeners.isEmpty || state.withLock { !$0.own.isEmpty || !$0.guests.isEmpty } }

    /// One look at the board. Call again and again.
    /// - Returns: whether somebody listens, here or elsewhere.
    @discardableResult
    func turn() async throws(RedisFailure) -> Bool {
        let board = board()
        try await look(at: board)
        try await serve(board)
        try await fetch(board)
        return isBusy
    }

    private var now: Int64 { Int64(time.monotonicNanoseconds / 1_000_000) }

    // MARK: Listeners

    /// Tells who listens here, and reads who listens elsewhere.
    private func look(at board: NodeBoard) async throws(RedisFailure) {
        let (now, listeners) = (now, stream.listeners)
        let names = Set(listeners.map { "\($0.id)" })
        let (isDue, gone, beat) = state.withLock { state in
            let known = Set(state.own.keys)
            for name in names.subtracting(known) { state.own[name] = (now, [:]) }
            let isTold = known == names && (names.isEmpty || now - state.toldAt < Self.wordEvery)
            guard !isTold || now - state.lookedAt >= Self.lookEvery else { return (false, [String](), state.beat) }
            state.beat += 1
            return (true, known.subtracting(names).sorted(), state.beat)
        }
        guard isDue else { return }
        var own: [String: [UInt8]] = [:]
        for listener in listeners { own["\(listener.id)"] = listener.filter.bytes(beat: beat) }
        let found = try await board.listeners(own: own, gone: gone)
        let left = state.withLock { state -> [String] in
            for name in gone { state.own[name] = nil }
            (state.toldAt, state.lookedAt) = (now, now)
            return state.guests(found.filter { !names.contains($0.key) }, now: now)
        }
        // A node that is gone leaves its listeners on the board.
        if !left.isEmpty { _ = try await board.listeners(own: [:], gone: left) }
    }

    // MARK: Facts

    /// Leaves what happened here for the listeners of other nodes.
    private func serve(_ board: NodeBoard) async throws(RedisFailure) {
        let (now, me) = (now, me())
        var pieces: [String: LivePiece] = [:]
        for (name, guest) in state.withLock({ $0.guests }) {
            guard let filter = LiveFilter(bytes: guest.wanted[...]), let page = stream.page(filter, after: guest.cursor, isRelayed: true)
            else { continue }
            state.withLock { $0.guests[name]?.cursor = page.cursor }
            guard !page.isEmpty || now - guest.leftAt >= Self.wordEvery else { continue }
            pieces[name] = LivePiece(node: me, facts: page.facts, skipped: guest.lost + page.skipped + (page.isGap ? 1 : 0))
        }
        do throws(RedisFailure) { try await board.put(pieces.mapValues(\.bytes)) } catch {
            state.withLock { state in
                for (name, piece) in pieces { state.guests[name]?.lost = piece.skipped + UInt64(piece.facts.count) }
            }
            throw error
        }
        state.withLock { state in
            for name in pieces.keys {
                state.guests[name]?.leftAt = now
                state.guests[name]?.lost = 0
            }
        }
    }

    /// Takes what other nodes have left for the listeners here.
    private func fetch(_ board: NodeBoard) async throws(RedisFailure) {
        let names = state.withLock { $0.own.keys.sorted() }
        for (name, pieces) in try await board.take(names) {
            // A piece of a newer build may have another shape: its node counts as missing.
            for piece in pieces.compactMap({ LivePiece(bytes: $0[...]) }) {
                state.withLock { [now] state in state.own[name]?.heard[piece.node] = now }
                if let id = UInt64(name) { stream.take(piece.facts, skipped: piece.skipped, for: id) }
            }
        }
    }
}

extension LiveRelay.State {
    /// Takes the listeners of the other nodes as they stand on the board.
    /// - Returns: those whose nodes are gone.
    fileprivate mutating func guests(_ found: [String: [UInt8]], now: Int64) -> [String] {
        var left: [String] = []
        guests = guests.filter { found[$0.key] != nil }
        for (name, wanted) in found {
            if guests[name] == nil {
                guard guests.count < LiveRelay.guestsMax else { continue }
                guests[name] = LiveRelay.Guest(wanted: wanted, changedAt: now)
            } else if guests[name]?.wanted != wanted {
                guests[name]?.wanted = wanted
                guests[name]?.changedAt = now
            } else if let changedAt = guests[name]?.changedAt, now - changedAt > LiveRelay.silenceMax {
                guests[name] = nil
                left.append(name)
            }
        }
        return left
    }
}
