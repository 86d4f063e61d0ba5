internal import CLoadSockets

/// The rule for the start of the next publish.
package enum PublishPace: Sendable, Equatable {
    /// Publishes per second, whatever the server does (open loop).
    case rate(Double)
    /// Publishes in flight at any time; each answer starts the next one (closed loop).
    case outstanding(Int)

    /// Whether a publisher subscribes to its channels itself: without answers, only an event's arrival shows that the next one may start.
    func needsWitnesses(_ dialect: any Dialect) -> Bool {
        if case .outstanding = self { !dialect.answersPublishes } else { false }
    }
}

/// Results of the publishes.
package struct PublishCounts: Sendable {
    package var sent: UInt64 = 0
    package var taken: UInt64 = 0
    /// Answers other than success, by status.
    package var refused: [Int: UInt64] = [:]
    /// Publishes without an answer: whether they were delivered is unknown.
    package var unanswered: UInt64 = 0
    /// Publishes due but not sent when publishing ended.
    package var unsent: UInt64 = 0
    /// Connections given up after repeated failures.
    package var abandoned: UInt64 = 0

    package init() {}

    /// Refused and unanswered publishes.
    package var failed: UInt64 { refused.values.reduce(unanswered, +) }

    package mutating func add(_ other: PublishCounts) {
        sent += other.sent
        taken += other.taken
        refused.merge(other.refused, uniquingKeysWith: +)
        unanswered += other.unanswered
        unsent += other.unsent
        abandoned += other.abandoned
    }
}

/// A publisher's channels, pace and event data.
package struct PublishPlan: Sendable {
    package var channels: [String]
    package var pace: PublishPace
    /// Connections, each with one request in flight.
    package var connections: Int
    /// Length of an event's data, mark included.
    package let bytes: Int
    /// Kind in the events' marks.
    package var kind: Int
    /// Kind that counts the time from due to answer.
    package var answeredKind: Int
    /// Stream in the first connection's mark; later connections count up from it.
    package var firstStream = 0
    /// Requests that each connection makes before publishing begins, and sends by turns; 0: each publish is made when it is
    /// sent. Only for events that nobody receives, because their marks repeat.
    package var preparedCount = 0
    /// Padding after the mark, up to `bytes`.
    private let rest: String

    package init(
        channels: [String], pace: PublishPace, connections: Int, bytes: Int, kind: Int, answeredKind: Int, firstStream: Int = 0
    ) {
        self.channels = channels
        self.pace = pace
        self.connections = connections
        self.bytes = bytes
        self.kind = kind
        self.answeredKind = answeredKind
        self.firstStream = firstStream
        let fill = bytes - EventMark.length - 15
        rest = fill > 0 ? "\",\"p\":\"\(String(repeating: "x", count: fill))\"}" : "\"}"
    }

    /// The event's data: a JSON object with the mark, padded to `bytes`.
    package func data(_ mark: EventMark) -> String {
        "{\"m\":\"" + mark.text + rest
    }
}

/// Publishes over its own connections, with one request in flight on each. Used on its worker's thread.
final class Publisher: LinkWatcher {
    private struct Line {
        var slot = -1
        var isReady = false
        var channel = 0
        /// Due time of the request in flight; 0: none.
        var due: UInt64 = 0
        var failuresInRow = 0
        var prepared: [Prepared] = []
        var nextPrepared = 0
    }

    /// A request that is sent more than once.
    private struct Prepared {
        var request: PublishAction
        let channel: Int
        var madeAt: UInt64
    }

    /// A request that is made, and not sent.
    private struct Unsent {
        let line: Int
        let request: PublishAction
        let channel: Int
        let due: UInt64
    }

    private let worker: Worker
    private let dialect: any Dialect
    /// The dialect towards each address.
    private let dialects: [any Dialect]
    private let plan: PublishPlan
    private var lines: [Line]
    private var idle: [Int] = []
    /// Next sequence by line, then by channel.
    private var sequences: [[UInt32]]
    private var schedule: OpenLoop?
    /// The open loop's next request, made before it is due: its latency leaves out how long the tester takes to sign it. Its line is not
    /// among the idle ones.
    private var ahead: Unsent?
    private var nextChannel = 0
    private var isPublishing = false
    private var witnesses = 0
    private var witnessesWanted = 0
    private(set) var counts = PublishCounts()

    /// Consecutive failures after which a line is given up.
    static let failuresMax = 20
    /// Nanoseconds before a failed connection is retried: a restarting server takes seconds.
    private static let retryPause: UInt64 = 250_000_000
    /// Nanoseconds after which a prepared request is made again: a signature is valid for ten minutes.
    private static let preparedFor: UInt64 = 300_000_000_000
    /// Nanoseconds before its due time at which a request is made at the earliest.
    private static let aheadMax: UInt64 = 10_000_000_000

    init(worker: Worker, dialect: any Dialect, plan: PublishPlan) {
        self.worker = worker
        self.dialect = dialect
        dialects = worker.targets.all.map(dialect.towards)
        self.plan = plan
        lines = Array(repeating: Line(), count: plan.connections)
        sequences = Array(repeating: Array(repeating: 0, count: plan.channels.count), count: plan.connections)
        if plan.pace.needsWitnesses(dialect) { listen() }
        if dialect.answersPublishes { for line in lines.indices { prepare(line) } }
        for line in lines.indices { connect(line) }
    }

    /// Makes the requests that a line sends by turns. A tester that signs each publish when it is due is slower than the server.
    private func prepare(_ line: Int) {
        let now = tandem_load_now()
        lines[line].prepared = (0..<plan.preparedCount).map { number in
            let channel = number % plan.channels.count
            let mark = EventMark(kind: plan.kind, stream: plan.firstStream + line, due: now, sequence: UInt32(number))
            return Prepared(request: request(line, channel, mark), channel: channel, madeAt: now)
        }
    }

    private func request(_ line: Int, _ channel: Int, _ mark: EventMark) -> PublishAction {
        dialects[node(of: line)].publish(channel: plan.channels[channel], data: plan.data(mark))
    }

    /// Subscribes to the published channels: without answers, an event's arrival shows that its publish went through.
    private func listen() {
        for (index, channel) in plan.channels.enumerated() {
            let witness = ConnectionPlan(dialect, channel: channel, index: index)
            witness.isCounted = false
            witness.wantsMessages = true
            witness.tag = Self.witnessTag
            witness.watcher = self
            worker.open(witness)
        }
        witnessesWanted = plan.channels.count
    }

    private static let witnessTag = -1

    func heard(_ slot: Int, _ message: UnsafeRawBufferPointer, mark: EventMark?, now: UInt64) {
        guard let mark, mark.kind == plan.kind, case let line = mark.stream - plan.firstStream, lines.indices.contains(line),
            lines[line].due == mark.due
        else { return }
        worker.tally.record(plan.answeredKind, from: mark.due, to: now, node: node(of: line))
        counts.taken += 1
        lines[line].due = 0
        lines[line].failuresInRow = 0
        freed(line, now: now)
    }

    var isConnected: Bool { lines.allSatisfy { $0.isReady } && witnesses >= witnessesWanted }
    /// Whether nothing is in flight.
    var isQuiet: Bool { lines.allSatisfy { $0.due == 0 } }

    /// Next sequence on every line of a channel.
    func ends(channel: Int) -> [UInt32] { sequences.map { $0[channel] } }

    func begin() {
        isPublishing = true
        let now = tandem_load_now()
        switch plan.pace {
        case .rate(let rate):
            let schedule = OpenLoop(rate: rate, start: now)
            self.schedule = schedule
            worker.add(
                Pace(due: schedule.nextDue) { [weak self] now in
                    guard let self, self.isPublishing else { return nil }
                    self.sendDue(now: now)
                    // With all lines busy, the next answer sends the due publishes, so no earlier timer is needed.
                    return self.ahead == nil && self.idle.isEmpty ? now + Self.busyPause : self.schedule?.nextDue
                })
        case .outstanding:
            let ready = idle
            idle.removeAll()
            for line in ready { send(made(line, due: now)) }
        }
    }

    private static let busyPause: UInt64 = 1_000_000

    func end() {
        isPublishing = false
        counts.unsent += schedule?.waiting(now: tandem_load_now()) ?? 0
        schedule = nil
        if let ahead { idle.append(ahead.line) }
        ahead = nil
    }

    private func sendDue(now: UInt64) {
        makeAhead(now: now)
        while let next = ahead, schedule?.take(now: now) != nil {
            ahead = nil
            send(next)
            makeAhead(now: now)
        }
    }

    /// Makes the open loop's next request, if a line is idle.
    private func makeAhead(now: UInt64) {
        guard ahead == nil, !idle.isEmpty, let due = schedule?.nextDue, due < now + Self.aheadMax else { return }
        // On several addresses the line that has rested longest: otherwise a low rate would go to one of them.
        ahead = made(dialects.count > 1 ? idle.removeFirst() : idle.removeLast(), due: due)
    }

    private func made(_ line: Int, due: UInt64) -> Unsent {
        let (request, channel) = nextRequest(line, due: due)
        return Unsent(line: line, request: request, channel: channel, due: due)
    }

    /// The next request of a line, and its channel.
    private func nextRequest(_ line: Int, due: UInt64) -> (PublishAction, channel: Int) {
        guard !lines[line].prepared.isEmpty else {
            let channel = nextChannel
            nextChannel = (nextChannel + 1) % plan.channels.count
            let mark = EventMark(kind: plan.kind, stream: plan.firstStream + line, due: due, sequence: sequences[line][channel])
            return (request(line, channel, mark), channel)
        }
        let number = lines[line].nextPrepared
        lines[line].nextPrepared = (number + 1) % lines[line].prepared.count
        let channel = lines[line].prepared[number].channel
        if due > lines[line].prepared[number].madeAt + Self.preparedFor {
            let mark = EventMark(kind: plan.kind, stream: plan.firstStream + line, due: due, sequence: UInt32(number))
            lines[line].prepared[number].request = request(line, channel, mark)
            lines[line].prepared[number].madeAt = due
        }
        return (lines[line].prepared[number].request, channel)
    }

    private func send(_ next: Unsent) {
        let line = next.line
        lines[line].channel = next.channel
        lines[line].due = next.due
        sequences[line][next.channel] += 1
        counts.sent += 1
        switch next.request {
        case .http(let request): worker.send(lines[line].slot, request)
        case .webSocket(let message):
            worker.sendMessage(lines[line].slot, message)
            // WebSocket publishes have no answer. A closed loop continues when its witness receives the event; an open loop need not wait.
            guard schedule != nil else { return }
            counts.taken += 1
            lines[line].due = 0
            idle.append(line)
        }
    }

    private func node(of line: Int) -> Int { line % dialects.count }

    private func freed(_ line: Int, now: UInt64) {
        guard isPublishing, schedule == nil else {
            idle.append(line)
            if isPublishing { sendDue(now: now) }
            return
        }
        send(made(line, due: now))
    }

    // MARK: Connections

    private func connect(_ line: Int) {
        let connection = ConnectionPlan()
        if !dialect.answersPublishes {
            connection.isCounted = false
            connection.path = dialect.path(channel: plan.channels[0])
            connection.subprotocol = dialect.subprotocol
            connection.isBinary = dialect.isBinary
            connection.steps = dialect.publisherOpening(channel: plan.channels[0])
        }
        connection.tag = line
        connection.node = node(of: line)
        connection.watcher = self
        lines[line].isReady = false
        lines[line].slot = worker.open(connection) ?? -1
    }

    func opened(_ slot: Int, now: UInt64) {
        guard let tag = worker.plans[slot]?.tag else { return }
        if tag == Self.witnessTag {
            witnesses += 1
            return
        }
        lines[tag].slot = slot
        lines[tag].isReady = true
        if isPublishing, schedule == nil { send(made(tag, due: now)) } else { idle.append(tag) }
        if isPublishing { sendDue(now: now) }
    }

    func answered(_ slot: Int, _ answer: HTTPAnswer, now: UInt64) {
        guard let line = worker.plans[slot]?.tag, lines[line].due != 0 else { return }
        let due = lines[line].due
        lines[line].due = 0
        if (200..<300).contains(answer.status) {
            counts.taken += 1
            lines[line].failuresInRow = 0
            worker.tally.record(plan.answeredKind, from: due, to: now, node: node(of: line))
        } else {
            counts.refused[answer.status, default: 0] += 1
            // The event never went out, so the next one takes its number.
            sequences[line][lines[line].channel] -= 1
        }
        if answer.closes { return }
        freed(line, now: now)
    }

    func closed(_ slot: Int, plan connection: ConnectionPlan, wasOpen: Bool, code: Int?, now: UInt64) {
        let line = connection.tag
        guard line != Self.witnessTag else {
            witnesses -= 1
            return
        }
        idle.removeAll { $0 == line }
        if ahead?.line == line { ahead = nil }
        if lines[line].due != 0 {
            counts.unanswered += 1
            lines[line].due = 0
        }
        lines[line].slot = -1
        lines[line].isReady = false
        lines[line].failuresInRow += 1
        guard lines[line].failuresInRow <= Self.failuresMax else {
            counts.abandoned += 1
            return
        }
        if wasOpen { return connect(line) }
        worker.add(
            Pace(due: now + Self.retryPause) { [weak self] _ in
                self?.connect(line)
                return nil
            })
    }
}
