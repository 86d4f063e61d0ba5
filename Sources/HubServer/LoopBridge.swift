internal import HubAPI
internal import HubChannels
internal import HubCore
internal import HubTransport
internal import PusherProtocol

/// One loop's transport and its engine, put together: what happens on connections goes up, what is to be written goes down.
@safe final class LoopBridge: LoopDelegate, DeliverySink {
    // Guard: the loop owns this delegate, and outlives it. Counted, every write would retain it.
    private let owner: Unmanaged<Loop>
    private var loop: Loop { unsafe owner.takeUnretainedValue() }
    private let ports: EnginePorts
    private let mailbox: Mailbox<LoopMessage>
    private let report: ([LoopReport]) -> Void
    private let reportFacts: ([ChannelFact]) -> Void
    private let relief: MemoryRelief
    private var inbox: [LoopMessage] = []
    /// Being closed by the transport; taken out of their channels at the turn's end, because the fan-out that found them slow is
    /// still walking those.
    private var slow: [ConnectionID] = []
    /// To be told when a whole turn has begun and ended since they asked, and those whose turn that is.
    private var asked: [@Sendable (Int) -> Void] = []
    private var heard: [@Sendable (Int) -> Void] = []
    // Set right after `init`, because both need this object.
    private var engine: ChannelEngine?
    private var router: Router?

    /// - Parameters:
    ///   - report: takes what delivery has to know of a turn.
    ///   - facts: takes what webhooks have to know of it.
    ///   - relief: is told of connections that come and go.
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
        relief.connectionChanged()
        let version = request.query.value("protocol")
        let client = request.query.value("client")
        engine?.open(connection, key: request.key, version: version, origin: request.origin, client: client) { [loop] in
            Self.peer(loop.remoteAddress(of: connection, request))
        }
    }

    func connection(_ connection: ConnectionID, received text: UnsafeRawBufferPointer) {
        // What another loop answered before this frame was sent is in the mailbox: an event that is older than a subscription
        // must not be fanned out behind its acknowledgement (docs/protocol.md, 2.3).
        handleMailbox()
        engine?.arrivedAt = loop.turnBeganAt
        unsafe engine?.received(text, from: connection)
    }

    func connection(_ connection: ConnectionID, receivedBinary bytes: UnsafeRawBufferPointer) { engine?.receivedBinary(from: connection) }
    func connectionReceivedFrame(_ connection: ConnectionID) { engine?.receivedFrame(from: connection) }
    func connectionReceivedTooMuch(_ connection: ConnectionID) { engine?.receivedTooMuch(from: connection) }
    func connectionIsSilent(_ connection: ConnectionID) { engine?.refuse(connection, .pongNotReceived) }
    /// Told by an event and by the close frame, as every refusal; the event cannot wait in the queue that is full.
    func connectionIsSlow(_ connection: ConnectionID) {
        let code = CloseCode.slowConsumer
        loop.close(connection, code: code.code, reason: code.reason, farewell: Frame.text(ServerEvent.error(code)))
        slow.append(connection)
    }

    func connection(_ connection: ConnectionID, receivedPong payload: UnsafeRawBufferPointer) {
        unsafe engine?.receivedPong(payload, from: connection)
    }

    func connectionClosed(_ connection: ConnectionID, end: ConnectionEnd) {
        relief.connectionChanged()
        // 1000 or no code: the app called its library's disconnect, as it does on its way to the background. A page that is left
        // or loaded again says 1001.
        switch end {
        case .closedByPeer(let code) where code == 1000 || code == 1005: engine?.closed(connection, as: .clean)
        case .closedByPeer, .closedByServer, .lost: engine?.closed(connection, as: .abnormal)
        }
    }

    func bodyLimit(of head: HTTPRequest) -> BodyLimit { router?.bodyLimit(of: head) ?? .refused(.starting) }

    func admitsConnection(from address: String) -> Bool { engine?.directory.admit(address: Self.peer(address)) ?? false }
    func connectionLeft(_ address: String) { engine?.directory.release(address: Self.peer(address)) }

    /// The key that counts an address's connections.
    private static func peer(_ address: String) -> String { IPAddress(address)?.neighbourhood.description ?? address }

    func request(_ request: HTTPRequest, reply: HTTPReply) -> HTTPResponse? {
        guard let router else { return .starting }
        // A backend that publishes over several connections expects the order of its requests: what another loop took and
        // answered before this request came is in the mailbox, and has to go out first.
        handleMailbox()
        engine?.arrivedAt = loop.turnBeganAt
        var request = request
        // Only the participants' routes limit by address; publishing is spared the system call.
        if !request.path.hasPrefix("/apps/") { request.remoteAddress = loop.remoteAddress(of: reply) }
        return router.respond(to: request) { [ports] response in ports.post(.respond(reply, response), to: reply.loop) }
    }

    func loopWoken() { handleMailbox() }

    private func handleMailbox() {
        guard mailbox.isOccupied else { return }
        mailbox.drain(into: &inbox)
        // Not kept until the next time, which may be long hence.
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

    func loopTurnEnds() {
        guard let engine else { return }
        // What the other loops took meanwhile goes out in the same write: publishers that are busy on two loops would otherwise cost
        // every subscriber two.
        handleMailbox()
        engine.flush()
        // Whoever has something to say meanwhile, publishers above all, is served between two pieces.
        if engine.isGoingOut { return unsafe owner._withUnsafeGuaranteedRef { $0.comeBackAtOnce() } }
        // A leaver has the rest of a turn written at once; so nobody leaves while one is on its way.
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

    /// Whoever asked in the middle of a turn is told at the end of the next one: by then the loop has looked at all of its sockets once.
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
    func probe(_ connection: ConnectionID, pingAfter: Duration, pongWithin: Duration) {
        loop.probe(connection, pingAfter: pingAfter, pongWithin: pongWithin)
    }
}

@available(*, unavailable)
extension LoopBridge: Sendable {}

extension HTTPResponse {
    fileprivate static var starting: HTTPResponse { .error(503, "the server is starting: try again in a moment") }
}
