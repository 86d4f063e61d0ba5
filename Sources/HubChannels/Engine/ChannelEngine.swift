package import HubCore
internal import HubJSON
package import PusherProtocol

/// The channels of one loop: what its connections say, who is subscribed to what, and the fan-out to them.
///
/// Driven by calls on the loop's thread; writes through a `DeliverySink`, talks to its siblings through `post`, and never
/// waits. Everything a peer can do wrong is answered on its own connection.
package final class ChannelEngine {
    package let loop: Int
    package let directory: AppDirectory
    let loopCount: Int
    let sink: any DeliverySink
    /// Sends a message to a sibling's engine; never called with this engine's own loop.
    private let post: (_ loop: Int, EngineMessage) -> Void
    /// A channel's traits by its definition; nil: it has none, and delivery does not want to know who is in it.
    let traits: (ChannelName) -> ChannelTraits?
    private let process: ProcessTag
    let time: any TimeSource
    private let writesPerPieceMax: Int
    /// The last flush went on with a turn, and announced nothing new.
    private var isBehind = false

    let parser = JSONParser(capacityBytes: ChannelEngine.frameBytesMax, depthMax: ChannelEngine.frameDepthMax)
    var connections: [UInt32: Connection] = [:]
    /// Connections that were put out of some channel.
    var barredConnections: Set<ConnectionID> = []
    /// Subscriptions that wait for the answer of their channel's home.
    var joiningCount = 0
    var channels = ChannelRegistry()
    // Guard: the loop's thread, and nothing that a write calls comes back to it. Checked, each channel of a publish would pay for it.
    @exclusivity(unchecked) var fanOut = FanOut()
    package let home: HomeRegistry
    /// Of the users this loop is home of.
    var users = UserRegistry()
    var receiptCursor = ReceiptCursor()
    /// Channels with events that wait for the PING behind them.
    var unprobedChannels: [Channel] = []
    private var cache = EventCache()
    let facts: FactLog
    /// What happened this turn that delivery has to know; taken by `takeReports`.
    var reports: [AttendanceReport] = []
    var nextSerial: UInt32 = 1
    /// Of the cache channel that was made last.
    var nextLine: UInt32 = 0
    /// Of the newest `AttendanceReport.attached`.
    var lastTicket: UInt64 = 0
    package internal(set) var counters = Counters()
    /// When what is being handled came in, in nanoseconds of the monotonic clock; 0: not known. Set by whoever calls the engine.
    package var arrivedAt: UInt64 = 0
    var latency = PublishLatency()

    /// Longest frame a client may send, in bytes, and how deep its JSON may nest.
    package static let frameBytesMax = 256 * 1024
    static let frameDepthMax = 32
    /// Subscriptions one connection may have: a safety cap, far above what clients use.
    static let subscriptionsMax = 1000

    package struct Counters: Sendable {
        package var publications: UInt64 = 0
        /// Publications that came in on this loop; those of client events are among them.
        package var published: UInt64 = 0
        /// Events written to subscribers, one for each of them.
        package var deliveries: UInt64 = 0
        /// Subscriptions in force now.
        package var subscriptions = 0
        /// Connections that were refused or closed by the engine, by close code.
        package var closes: [UInt16: UInt64] = [:]
        package var clientEvents: UInt64 = 0
        package var refusals: UInt64 = 0
        /// PONGs with a cursor that was never sent.
        package var strayReceipts: UInt64 = 0

        /// A publication has gone to so many subscribers: one access for all of it.
        mutating func fannedOut(_ count: UInt64) {
            publications += 1
            deliveries += count
        }
    }

    package init(
        loop: Int, loopCount: Int, directory: AppDirectory, process: ProcessTag, sink: any DeliverySink, time: any TimeSource,
        writesPerPieceMax: Int = FanOut.writesPerPieceMax, traits: @escaping (ChannelName) -> ChannelTraits?,
        post: @escaping (_ loop: Int, EngineMessage) -> Void
    ) {
        self.loop = loop
        self.loopCount = loopCount
        self.directory = directory
        self.process = process
        self.sink = sink
        self.time = time
        self.writesPerPieceMax = writesPerPieceMax
        self.traits = traits
        self.post = post
        facts = FactLog(kinds: directory.apps.map(\.factKinds))
        home = HomeRegistry(loopCount: loopCount, apps: directory.apps, facts: facts)
    }

    // MARK: Connections

    /// Lets a connection in, or sends the error and the close frame that say why not (docs/protocol.md, 1.1 to 1.7).
    /// - Parameters:
    ///   - key: from the path; nil: the path names no app.
    ///   - version: the `protocol` parameter.
    ///   - client: the `client` parameter: the name of the library.
    ///   - address: the peer's; asked for once, of whoever is about to be let in.
    package func open(
        _ connection: ConnectionID, key: String?, version: String?, origin: String?, client: String? = nil, address: () -> String = { "" }
    ) {
        guard let key else { return refuse(connection, .pathNotFound) }
        guard let app = directory.app(key: key) else { return refuse(connection, .applicationDoesNotExist) }
        guard app.isEnabled else { return refuse(connection, .applicationDisabled) }
        switch ProtocolVersion.check(version) {
        case .accepted: break
        case .refused(let code): return refuse(connection, code)
        }
        if let origin, !app.allowedOrigins.isEmpty, !app.allowedOrigins.contains(origin) {
            return refuse(connection, .unauthorized)
        }
        let address = address()
        if let refusal = directory.admit(app, address: address) { return refuse(connection, refusal) }
        let socketID = process.socketID(of: connection)
        connections[UInt32(connection.slot)] = Connection(
            id: connection, app: app, socketID: socketID, isBrowser: client == "js", address: address)
        send(ServerEvent.connectionEstablished(socketID: socketID, activityTimeoutSeconds: app.activityTimeoutSeconds), to: connection)
        sink.probe(connection, pingAfter: app.pingInterval, pongWithin: app.pongTimeout)
    }

    /// Sends a fatal error and closes with the same code: clients of old protocols read the one, new ones the other.
    package func refuse(_ connection: ConnectionID, _ code: CloseCode) {
        counters.refusals += 1
        counters.closes[code.code, default: 0] += 1
        send(ServerEvent.error(code), to: connection)
        sink.close(connection, code: code.code, reason: code.reason)
        // Nothing is written to it any more, and its peer may be long gone: whoever it stood for is absent from now on, not
        // only when the close handshake is over.
        switch code {
        case .pongNotReceived: closed(connection, as: .silent)
        case .restarting: closed(connection, as: .server)
        default: closed(connection, as: .clean)
        }
    }

    /// A connection is gone, or is being closed. Safe to call again.
    package func closed(_ id: ConnectionID, as departure: Departure) {
        guard connections[UInt32(id.slot)]?.id == id, let connection = connections.removeValue(forKey: UInt32(id.slot)) else { return }
        for subscription in connection.subscriptions.values { end(subscription, of: connection) }
        signOut(connection)
        if connection.isWatched { reports.append(.disconnected(id, departure)) }
        if !connection.barred.isEmpty { barredConnections.remove(id) }
        directory.release(connection.app, address: connection.address)
    }

    /// The connection that a socket id names, on whatever loop it is; nil when it is not one of this process.
    package func connection(socketID: SocketID) -> ConnectionID? {
        process.connection(of: socketID)
    }

    package var connectionIDs: [ConnectionID] { connections.values.map(\.id) }

    /// Nil when it is gone, also when somebody else has its slot.
    func connection(_ id: ConnectionID) -> Connection? {
        guard let connection = connections[UInt32(id.slot)], connection.id == id else { return nil }
        return connection
    }

    // MARK: Frames

    /// Handles one text message. Nothing in it can do more than be answered with an error.
    package func received(_ text: UnsafeRawBufferPointer, from id: ConnectionID) {
        guard let connection = connection(id), pays(connection) else { return }
        switch unsafe ClientEvent.parse(text, with: parser) {
        case .ping: send(ServerEvent.pong(), to: id)
        case .pong: receivedPagePong(connection)
        case .subscribe(let channel, let auth, let channelData):
            subscribe(connection, to: channel, auth: auth, channelData: channelData)
        case .unsubscribe(let channel): unsubscribe(connection, from: channel)
        case .client(let name, let channel, let data): clientEvent(name, channel, data, from: connection)
        case .signIn(let auth, let userData): signIn(connection, auth: auth, userData: userData)
        case .unknown(let name): complain(to: id, "Unknown event '\(name.quotable(64))'")
        case .malformed(let reason): complain(to: id, reason)
        }
    }

    /// Binary messages have no meaning in the protocol.
    package func receivedBinary(from id: ConnectionID) {
        guard let connection = connection(id), pays(connection) else { return }
        complain(to: id, "Binary messages are not supported: send JSON in text frames")
    }

    /// A message that passed the size limit: what follows on this connection cannot be trusted to be wanted.
    package func receivedTooMuch(from id: ConnectionID) {
        complain(to: id, "The message is longer than this server accepts")
        sink.close(id, code: 1009, reason: "message too big")
        closed(id, as: .clean)
    }

    /// An error that does not end the connection. Its code is null: clients act on numbers (docs/protocol.md, 1.7).
    func complain(to id: ConnectionID, code: Int? = nil, _ message: String) {
        counters.refusals += 1
        send(ServerEvent.error(code: code, message: message), to: id)
    }

    func send(_ payload: [UInt8], to id: ConnectionID) {
        sink.send(Frame.text(payload), to: id)
    }

    // MARK: Publishing

    /// Hands an event to every loop, this one included.
    package func publish(_ publication: Publication) {
        counters.published += 1
        for other in 0..<loopCount where other != loop { post(other, .publish(publication)) }
        fanOut(publication)
    }

    private func fanOut(_ publication: Publication) {
        var deliveries: UInt64 = 0
        var isReached = false
        for entry in publication.frames {
            let (name, frame) = (entry.channel, entry.frame)
            if let order = publication.cacheOrder, name.kind.isCache {
                cache.store(frame, order: order, for: ChannelKey(app: publication.app, name: name), now: time.monotonicNanoseconds)
            }
            guard let channel = channels[publication.app, name] else { continue }
            isReached = true
            let cutoff = publication.attendedUpTo?[loop] ?? .max
            if publication.audience != .everybody || channel.newestTicket > cutoff {
                deliveries += unsafe fanOut.deliver(frame, of: publication, attendedUpTo: cutoff, to: channel, sink: sink)
            } else {
                // An event that has to be confirmed is not one that the next can stand for.
                let line = publication.cacheOrder == nil || publication.receipt != nil ? 0 : channel.line
                let excluded = slot(of: publication.excluded, in: channel)
                unsafe fanOut.append(frame, to: channel, excluding: excluded, line: line, sink: sink)
                deliveries += UInt64(channel.count - (excluded == nil ? 0 : 1))
            }
            if let receipt = publication.receipt { wantReceipt(receipt, on: channel) }
        }
        counters.fannedOut(deliveries)
        if isReached, publication.arrivedAt != 0 { latency.begin(publication) }
    }

    /// The slot of a subscriber; nil when the connection is none of this channel.
    private func slot(of id: ConnectionID?, in channel: Channel) -> UInt32? {
        guard let id, id.loop == loop, let subscription = connection(id)?.subscriptions[channel.name],
            case .active(let active) = subscription.phase, active === channel
        else { return nil }
        return UInt32(id.slot)
    }

    /// How long a cache channel keeps its last event.
    package static let cacheSeconds = Int(EventCache.lifetimeSeconds)

    /// What a cache channel holds: the event's data, and for how many seconds it is kept; nil when it holds nothing. The
    /// data is that of the last event which this loop has been told of.
    package func cachedEvent(app: Int, channel: ChannelName) -> (data: String, secondsLeft: Int)? {
        let key = ChannelKey(app: app, name: channel)
        guard let (frame, remaining) = cache.event(for: key, now: time.monotonicNanoseconds) else { return nil }
        let data = unsafe frame.withUnsafeBytes { frame in
            unsafe (try? parser.parse(Frame.payload(of: frame)))?.find("data")?.string
        }
        // Rounded up: an event just published is kept for the whole time.
        return data.map { ($0, Int((remaining + 999_999_999) / 1_000_000_000)) }
    }

    /// Tells a new subscriber of a cache channel what was published last, or that nothing is known.
    func sendCached(_ channel: ChannelName, to connection: Connection) {
        let key = ChannelKey(app: connection.app.index, name: channel)
        if let (frame, _) = cache.event(for: key, now: time.monotonicNanoseconds) { return sink.send(frame, to: connection.id) }
        send(ServerEvent.cacheMiss(channel: channel), to: connection.id)
        facts.note(app: connection.app.index, channel, .cacheMiss)
    }

    /// Ends a turn: what was collected goes out, or the next piece of it. Called at least a few times a second, and soon again when
    /// `hasMoreToWrite`.
    package func flush() {
        isBehind = unsafe fanOut.isGoingOut
        if !isBehind {
            announcePresence()
            announceCounts()
            sendProbes()
            latency.goOut()
        }
        unsafe fanOut.flush(writesMax: writesPerPieceMax, sink: sink)
    }

    /// A turn has been written to some, and to others not yet.
    package var isGoingOut: Bool { unsafe fanOut.isGoingOut }
    /// As `isGoingOut`, or something may have been collected since that turn began to go out.
    package var hasMoreToWrite: Bool { unsafe isBehind || !fanOut.isEmpty }

    /// What webhooks have to know of this turn, in order.
    package func takeFacts() -> [ChannelFact] { facts.take() }

    /// What delivery has to know of this turn, in order.
    package func takeReports() -> [AttendanceReport] {
        if reports.isEmpty { return [] }
        defer { reports.removeAll() }
        return reports
    }

    // MARK: Between loops

    package func receive(_ message: EngineMessage) {
        switch message {
        case .publish(let publication): fanOut(publication)
        case .join(let membership, let member): join(membership, member)
        case .leave(let membership, let user): leave(membership, user: user)
        case .admitted(let memberships, let acknowledgement): admitted(memberships, acknowledgement: acknowledgement)
        case .refused(let membership, let refusal): refused(membership, refusal)
        case .announce(let app, let name, let frame):
            if let channel = channels[app, name] { unsafe fanOut.append(frame, to: channel, sink: sink) }
        case .occupancy(let app, let channel, let loop, let subscribers):
            home.setOccupancy(app: app, channel: channel, loop: loop, subscribers: subscribers)
        case .audience(let id, let channel, let audience):
            connection(id)?.subscriptions[channel]?.audience = audience
        case .user(let message): receive(message)
        case .prove(let event, let connections): prove(event, by: connections)
        case .replay(let connection, let channel, let frames, let events):
            replay(frames, events: events, on: channel, to: connection)
        case .definitionsChanged: definitionsChanged()
        case .expel(let expulsion): expel(expulsion)
        case .readmit(let app, let channel, let user): readmit(app: app, channel: channel, user: user)
        case .bound(let connection, let channel): bound(connection, channel: channel)
        case .terminate(let app, let user): endConnections(app: app, user: user)
        case .query(let question): question(home)
        }
    }

    /// To another loop's engine, or to this one at once.
    func send(_ message: EngineMessage, to loop: Int) {
        if loop == self.loop { receive(message) } else { post(loop, message) }
    }

    /// The loop that decides who is in the channel.
    package func homeLoop(app: Int, channel: ChannelName) -> Int {
        ChannelKey(app: app, name: channel).home(loopCount: loopCount)
    }

    func countStrayReceipt() {
        counters.strayReceipts += 1
    }

    func countClientEvent() {
        counters.clientEvents += 1
    }
}

@available(*, unavailable)
extension ChannelEngine: Sendable {}
