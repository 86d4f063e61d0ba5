internal import HubAPI
internal import HubChannels
internal import HubCore
internal import HubTransport
internal import PusherProtocol

/// The seam between a loop's transport and its channel engine: events of connections go up, writes go down.
@safe final class LoopBridge: LoopDelegate, DeliverySink {
    // The loop owns this delegate and outlives it, so the reference is not counted: every write would retain it.
    private let owner: Unmanaged<Loop>
    private var loop: Loop { unsafe owner.takeUnretainedValue() }
    private let ports: EnginePorts
    private let mailbox: Mailbox<LoopMessage>
    private let report: ([LoopReport]) -> Void
    private let reportFacts: ([ChannelFact]) -> Void
    private let relief: MemoryRelief
    private var inbox: [LoopMessage] = []
    /// Connections that the transport is closing. They leave their channels at the turn's end, because the fan-out that found them slow
    /// still walks these.
    private var slow: [ConnectionID] = []
    /// Callers that wait for a whole turn after their question, and callers whose turn has begun.
    private var asked: [@Sendable (Int) -> Void] = []
    private var heard: [@Sendable (Int) -> Void] = []
    // Both are set right after `init`, because making them needs this object.
    private var engine: ChannelEngine?
    private var router: Router?

    /// - Parameters:
    ///   - report: takes a turn's reports for delivery.
    ///   - facts: takes a turn's facts for webhooks.
    ///   - relief: counts connections that come and go.
    init(
        loop: Loop, ports: EnginePorts, report: @escaping ([LoopReport]) -> Void, facts: @escaping ([ChannelFact]) -> Void,
        relief: MemoryRelief
    ) {
        unsafe owner = unsafe .passUnretained(loop)
        self.ports = ports
        mailbox = ports.mailbox(loop.index)
        self.report = report
        reportFacts = facts
        self.relief = relief
    }

    func start(engine: ChannelEngine, router: Router) {
        self.engine = engine
        self.router = router
    }

    // MARK: From the transport

    func connectionOpened(_ connection: ConnectionID, request: UpgradeRequest) {
        relief.connectionCame()
        let version = request.query.value("protocol")
        let client = request.query.value("client")
        engine?.open(connection, key: request.key, version: version, origin: request.origin, client: client) { [loop] in
            Self.peer(loop.remoteAddress(of: connection, request))
        }
    }

    func connection(_ connection: ConnectionID, received text: UnsafeRawBufferPointer) {
        // The mailbox may contain an event that another loop acknowledged before this frame was sent. It must not be fanned out after the
        // acknowledgement of a newer subscription (docs/protocol.md, 2.3).
        handleMailbox()
        engine?.arrivedAt = loop.turnBeganAt
        unsafe engine?.received(text, from: connection)
    }

    func connection(_ connection: ConnectionID, receivedBinary bytes: UnsafeRawBufferPointer) { engine?.receivedBinary(from: connection) }
    func connectionReceivedFrame(_ connection: ConnectionID) { engine?.receivedFrame(from: connection) }
    func connectionReceivedTooMuch(_ connection: ConnectionID) { engine?.receivedTooMuch(from: connection) }
    func connectionIsSilent(_ connection: ConnectionID) { engine?.refuse(connection, .pongNotReceived) }
    /// Closes the connection with an error event and a close frame, as every refusal. The event cannot wait in the queue, which is full.
    func connectionIsSlow(_ connection: ConnectionID) {
        let code = CloseCode.slowConsumer
        loop.close(connection, code: code.code, reason: code.reason, farewell: Frame.text(ServerEvent.error(code)))
        slow.append(connection)
    }

    func connection(_ connection: ConnectionID, receivedPong payload: UnsafeRawBufferPointer) {
        unsafe engine?.receivedPong(payload, from: connection)
    }

    func socketClosed() { relief.connectionLeft() }

    func connectionClosed(_ connection: ConnectionID, end: ConnectionEnd) {
        // With 1000 or no code the app called its library's disconnect, as on its way to the background. A page that is left or loaded
        // again sends 1001.
        switch end {
        case .closedByPeer(let code) where code == 1000 || code == 1005: engine?.closed(connection, as: .clean)
        case .closedByPeer, .closedByServer, .lost: engine?.closed(connection, as: .abnormal)
        }
    }

    func bodyLimit(of head: HTTPRequest) -> BodyLimit { router?.bodyLimit(of: head) ?? .refused(.starting) }

    func admitsConnection(from address: String) -> Bool { engine?.directory.admit(address: Self.peer(address)) ?? false }
    func connectionLeft(_ address: String) { engine?.directory.release(address: Self.peer(address)) }

    /// The beginning of all paths of backends.
    private static let backendPath: StaticString = "/apps/"

    /// Key under which an address's connections are counted.
    private static func peer(_ address: String) -> String { IPAddress(address)?.neighbourhood.description ?? address }

    func request(_ request: HTTPRequest, reply: HTTPReply) -> HTTPResponse? {
        guard let router else { return .starting }
        // Events that another loop acknowledged before this request are in the mailbox, and have to go out first. A backend with several
        // connections expects the order of its requests.
        handleMailbox()
        engine?.arrivedAt = loop.turnBeganAt
        let later = LateAnswer(reply, through: ports)
        // Only the participants' routes limit by address; publishing is spared the system call and a copy.
        if Self.backendPath.begins(request.path) { return router.respond(to: request, later: later) }
        var request = request
        request.remoteAddress = loop.remoteAddress(of: reply)
        return router.respond(to: request, later: later)
    }

    func loopWoken() { handleMailbox() }

    private func handleMailbox() {
        guard mailbox.isOccupied else { return }
        mailbox.drain(into: &inbox)
        engine?.adoptApps()
        // The messages are released at once: the next drain may be a long time away.
        defer { inbox.removeAll(keepingCapacity: true) }
        for message in inbox {
            switch message {
            case .engine(let message): engine?.receive(message)
            case .respond(let reply, let response): loop.respond(reply, response)
            case .report(let answer): asked.append(answer)
            case .drain(let count):
                for connection in engine?.connectionIDs.prefix(count) ?? [] { engine?.refuse(connection, .restarting) }
            case .measure(let take): take(LoopReading(loop: loop.figures, engine: engine?.figures ?? EngineCounters()))
            }
        }
    }

    var hasFewWrites: Bool { engine?.hasFewWrites ?? false }

    func writeAhead() { engine?.flush() }

    func loopTurnEnds() {
        guard let engine else { return }
        // Events that other loops took meanwhile share this write. Otherwise publishers that are busy on two loops would cost every
        // subscriber two writes.
        handleMailbox()
        engine.flush()
        // Between two pieces of a long write, waiting callers are served, publishers above all.
        if engine.isGoingOut { return unsafe owner._withUnsafeGuaranteedRef { $0.comeBackAtOnce() } }
        // Closing a leaver would write the rest of a turn at once, so nobody leaves during a long write.
        while !engine.isGoingOut, let connection = slow.popLast() {
            engine.closed(connection, as: .abnormal)
            engine.flush()
        }
        let reports = engine.takeReports()
        if !reports.isEmpty { report(reports) }
        answerWhoAsked()
        let facts = engine.takeFacts()
        if !facts.isEmpty { reportFacts(facts) }
        if engine.hasMoreToWrite { unsafe owner._withUnsafeGuaranteedRef { $0.comeBackAtOnce() } }
    }

    /// Answers callers of an earlier turn: since then the loop has looked at all of its sockets once.
    private func answerWhoAsked() {
        if heard.isEmpty, asked.isEmpty { return }
        let newcomers = loop.figures.newcomers
        for answer in heard { answer(newcomers) }
        heard.removeAll(keepingCapacity: true)
        swap(&asked, &heard)
        if !heard.isEmpty { unsafe owner._withUnsafeGuaranteedRef { $0.comeBackAtOnce() } }
    }

    func loopTurnWritten(at now: UInt64) { engine?.written(at: now) }

    // MARK: To the transport

    func deliver(
        _ frames: UnsafeRawBufferPointer, to slots: UnsafeBufferPointer<UInt32>, latestOnly: UnsafeBufferPointer<LatestOnlyFrame>
    ) {
        unsafe owner._withUnsafeGuaranteedRef { unsafe $0.deliver(frames, to: slots, latestOnly: latestOnly) }
    }

    func send(_ frames: [UInt8], to connection: ConnectionID) { loop.send(frames, to: connection) }
    func send(list: [UInt8], to connection: ConnectionID) { loop.send(list, to: connection, isList: true) }
    func close(_ connection: ConnectionID, code: UInt16, reason: String) { loop.close(connection, code: code, reason: reason) }
    func watchSilence(_ connection: ConnectionID, pingAfter: Duration, pongWithin: Duration) {
        loop.watchSilence(connection, pingAfter: pingAfter, pongWithin: pongWithin)
    }
}

@available(*, unavailable)
extension LoopBridge: Sendable {}

extension HTTPResponse {
    fileprivate static var starting: HTTPResponse { .error(503, "the server is starting: try again in a moment") }
}
