package import HubCore
internal import HubJSON
package import PusherProtocol

/// The channels of one loop: client messages, subscriptions and fan-out.
///
/// Runs on the loop's thread and never waits. It writes via a `DeliverySink` and sends messages to its siblings via `post`.
/// A peer's mistakes are answered on the peer's own connection.
package final class ChannelEngine {
    /// Index of this engine's loop.
    package let loop: Int
    /// The apps and their connection counts, shared by all loops.
    package let directory: AppDirectory
    /// The apps in force on this loop.
    package internal(set) var apps: AppTable
    /// Version of `apps`.
    package internal(set) var appsVersion: UInt64
    /// Connections of apps that were disabled or removed, to be closed a few at a time.
    var dismissed: [ConnectionID] = []
    let loopCount: Int
    let sink: any DeliverySink
    /// Sends a message to a sibling's engine; never called with this engine's own loop.
    private let post: (_ loop: Int, EngineMessage) -> Void
    private let reporting: (([LoopReport]) -> Void)?
    /// A channel's traits by its definition. Nil: no definition, and delivery gets no reports about the channel.
    let traits: (ChannelName) -> ChannelTraits?
    private let process: ProcessTag
    /// The messages between this node and the others; nil where there are none.
    package let nodes: NodeExchange?
    let time: any TimeSource
    private let writesPerPieceMax: Int
    /// The last flush continued a turn, and announced nothing new.
    private var isBehind = false

    let parser = JSONParser(capacityBytes: ChannelEngine.frameBytesMax, depthMax: ChannelEngine.frameDepthMax)
    var connections: [UInt32: Connection] = [:]
    /// Connections that wait for the other nodes' room.
    var opening: [ConnectionID: Opening] = [:]
    /// Connections that signed in, and the success to send once the other nodes can see it.
    var signingIn: [ConnectionID: [UInt8]] = [:]
    /// Connections that were put out of some channel and stay barred from it.
    var barredConnections: Set<ConnectionID> = []
    /// Subscriptions that wait for an answer from their channel's home.
    var joiningCount = 0 {
        didSet { assert(joiningCount >= 0, "\(joiningCount) subscriptions wait for their homes, \(oldValue) before") }
    }
    var channels = ChannelRegistry()
    // Unchecked: one thread, and no write calls back into the engine. A dynamic exclusivity check would cost time per channel of a publish.
    @exclusivity(unchecked) var fanOut = FanOut()
    /// Decisions for the channels that this loop is home of.
    package let home: HomeRegistry
    /// Users that this loop is home of.
    var users = UserRegistry()
    /// The watched ones among them, where there are several nodes.
    var watchedUsers = WatchedUsers()
    var receiptCursor = ReceiptCursor()
    /// Channels with events whose PING has not been sent yet.
    var unpingedChannels: [Channel] = []
    private var cache = EventCache()
    let facts: FactLog
    /// Reports of this turn for delivery, until `takeReports`.
    var reports: [LoopReport] = []
    var nextSerial: UInt32 = 1
    /// Line of the newest cache channel.
    var nextLine: UInt32 = 0
    /// Ticket of the newest `LoopReport.attached`.
    var lastTicket: UInt64 = 0 {
        didSet { assert(lastTicket > oldValue, "ticket \(lastTicket) follows \(oldValue)") }
    }
    /// Totals of this loop. Read on the loop's thread.
    package var counters: Counters { unsafe tally }
    // Guard: the loop's thread. Unchecked: each count is one access that calls nobody.
    @exclusivity(unchecked) var tally = Counters()
    /// Arrival of the request or message being handled, in nanoseconds of the monotonic clock; 0: unknown. Set by the engine's caller.
    package var arrivedAt: UInt64 {
        get { arrival }
        set { arrival = newValue }
    }
    // A property that other modules could change is checked for overlaps at run time, at each access.
    private var arrival: UInt64 = 0
    var latency = PublishLatency()

    /// Bytes of a client's frame.
    package static let frameBytesMax = 256 * 1024
    /// Nesting depth of a client's JSON.
    static let frameDepthMax = 32
    /// Subscriptions per connection: a safety cap, far above real use.
    static let subscriptionsMax = 1000

    /// Totals of one loop since its start, for metrics.
    package struct Counters: Sendable {
        /// Publications that reached subscribers of this loop.
        package var publications: UInt64 = 0
        /// Publications that arrived on this loop, client events included.
        package var published: UInt64 = 0
        /// Events written to subscribers, counted per subscriber.
        package var deliveries: UInt64 = 0
        /// Subscriptions in force now.
        package var subscriptions = 0
        /// Connections that were refused or closed by the engine, by close code.
        package var closes: [UInt16: UInt64] = [:]
        /// Client events accepted from connections of this loop.
        package var clientEvents: UInt64 = 0
        /// Errors sent to connections of this loop, fatal or not.
        package var refusals: UInt64 = 0
        /// PONGs with a cursor that was never sent.
        package var strayReceipts: UInt64 = 0

        /// Counts a publication to this many subscribers in one access.
        mutating func fannedOut(_ count: UInt64) {
            publications += 1
            deliveries += count
        }
    }

    /// - Parameters:
    ///   - loop: index of this engine's loop, below `loopCount`.
    ///   - process: the same for all loops.
    ///   - writesPerPieceMax: connections written to before the loop serves other sockets.
    ///   - traits: a channel's traits by the definitions in force; nil without a definition.
    ///   - nodes: the messages between this node and the others, connected; nil: there are no others.
    ///   - reporting: takes reports that an answer to a client must not overtake; nil: all wait for `takeReports`.
    ///   - post: sends a message to another loop's engine.
    package init(
        loop: Int, loopCount: Int, directory: AppDirectory, process: ProcessTag, sink: any DeliverySink, time: any TimeSource,
        writesPerPieceMax: Int = FanOut.writesPerPieceMax, traits: @escaping (ChannelName) -> ChannelTraits?, nodes: NodeExchange? = nil,
        reporting: (([LoopReport]) -> Void)? = nil, post: @escaping (_ loop: Int, EngineMessage) -> Void
    ) {
        precondition((0..<loopCount).contains(loop) && writesPerPieceMax > 0, "loop \(loop) of \(loopCount), \(writesPerPieceMax) writes")
        self.loop = loop
        self.loopCount = loopCount
        self.directory = directory
        self.process = process
        self.nodes = nodes
        self.sink = sink
        self.time = time
        self.writesPerPieceMax = writesPerPieceMax
        self.traits = traits
        self.reporting = reporting
        self.post = post
        // The version is read first: a change in between is only taken over twice.
        appsVersion = directory.version
        apps = directory.table
        facts = FactLog(kinds: apps.apps.map(\.factKinds))
        home = HomeRegistry(loopCount: loopCount, apps: apps.apps, facts: facts, loop: loop, backplane: nodes?.backplane)
    }

    // MARK: Connections

    /// Lets a connection in, or sends the error and the close frame that say why not (docs/protocol.md, 1.1 to 1.7).
    /// - Parameters:
    ///   - key: from the path; nil: the path names no app.
    ///   - version: the `protocol` parameter.
    ///   - client: the `client` parameter: the name of the library.
    ///   - address: the peer's address; evaluated once, and only after all other checks.
    package func open(
        _ connection: ConnectionID, key: String?, version: String?, origin: String?, client: String? = nil, address: () -> String = { "" }
    ) {
        guard let key else { return refuse(connection, .pathNotFound) }
        guard let app = apps.app(key: key) else { return refuse(connection, .applicationDoesNotExist) }
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
        if nodes != nil, waitsForNodes(connection, app, client: client, address: address) { return }
        establish(connection, app, client: client, address: address)
    }

    func establish(_ connection: ConnectionID, _ app: App, client: String?, address: String) {
        let socketID = process.socketID(of: connection)
        // A former connection's subscriptions would send its events to the new one.
        precondition(
            connection.loop == loop && connections[UInt32(connection.slot)] == nil,
            "connection \(connection) opens on loop \(loop), and its slot is taken or another loop's")
        connections[UInt32(connection.slot)] = Connection(
            id: connection, app: app, socketID: socketID, isBrowser: client == "js", address: address)
        send(ServerEvent.connectionEstablished(socketID: socketID, activityTimeoutSeconds: app.activityTimeoutSeconds), to: connection)
        sink.watchSilence(connection, pingAfter: app.pingInterval, pongWithin: app.pongTimeout)
    }

    /// Sends a fatal error and closes with the same code. Old clients read the error, new clients the close frame.
    package func refuse(_ connection: ConnectionID, _ code: CloseCode) {
        unsafe tally.refusals += 1
        unsafe tally.closes[code.code, default: 0] += 1
        send(ServerEvent.error(code), to: connection)
        sink.close(connection, code: code.code, reason: code.reason)
        // Nothing more is written to the connection, and its peer may be long gone. So its user is absent from now on,
        // before the close handshake ends.
        switch code {
        case .pongNotReceived: closed(connection, as: .silent)
        case .restarting: closed(connection, as: .server)
        default: closed(connection, as: .clean)
        }
    }

    /// Removes a connection that is closed or about to close. Idempotent.
    package func closed(_ id: ConnectionID, as departure: Departure) {
        guard connections[UInt32(id.slot)]?.id == id, let connection = connections.removeValue(forKey: UInt32(id.slot)) else {
            if nodes != nil { closedBeforeAdmission(id) }
            return
        }
        if nodes != nil { leaveNodes(connection.app) }
        for subscription in connection.subscriptions.values { end(subscription, of: connection, isSent: departure == .server) }
        assert(connection.anonymousBytes == 0, "connection \(id) ends with \(connection.anonymousBytes) bytes of anonymous subscriptions")
        signOut(connection)
        assert(connection.barred.isEmpty != barredConnections.contains(id), "\(id) is barred from \(connection.barred.count) channels")
        if connection.isWatched { reports.append(.disconnected(id, departure)) }
        if !connection.barred.isEmpty { barredConnections.remove(id) }
        directory.release(connection.app, address: connection.address)
    }

    /// The connection with this socket id, on any loop; nil if this process did not issue the id.
    package func connection(socketID: SocketID) -> ConnectionID? {
        process.connection(of: socketID)
    }

    /// Open connections of this loop.
    package var connectionIDs: [ConnectionID] { connections.values.map(\.id) }

    /// Nil if the connection is gone, even if its slot is in use again.
    func connection(_ id: ConnectionID) -> Connection? {
        guard let connection = connections[UInt32(id.slot)], connection.id == id else { return nil }
        return connection
    }

    // MARK: Frames

    /// Handles one text message. The worst outcome of a bad message is an error on its own connection.
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

    /// Closes a connection after a message that exceeded the size limit.
    package func receivedTooMuch(from id: ConnectionID) {
        complain(to: id, "The message is longer than this server accepts")
        sink.close(id, code: 1009, reason: "message too big")
        closed(id, as: .clean)
    }

    /// An error that does not end the connection. Its code is null: clients act on numbers (docs/protocol.md, 1.7).
    func complain(to id: ConnectionID, code: Int? = nil, _ message: String) {
        unsafe tally.refusals += 1
        send(ServerEvent.error(code: code, message: message), to: id)
    }

    func send(_ payload: [UInt8], to id: ConnectionID) {
        sink.send(Frame.text(payload), to: id)
    }

    // MARK: Publishing

    /// Hands an event to every loop, this one included.
    package func publish(_ publication: Publication) {
        unsafe tally.published += 1
        for other in 0..<loopCount where other != loop { post(other, .publish(publication)) }
        fanOut(publication)
    }

    private func fanOut(_ publication: Publication) {
        assert(apps.apps.indices.contains(publication.app), "a publication of app \(publication.app)")
        assert(
            publication.attendedUpTo.map { $0.count == loopCount } ?? true,
            "tickets of \(publication.attendedUpTo?.count ?? 0) loops, and there are \(loopCount)")
        var deliveries: UInt64 = 0
        var isReached = false
        // The property would be checked for overlaps at each channel. No fan-out adds or removes one.
        let channels = channels
        for entry in publication.frames {
            let (name, frame) = (entry.channel, entry.frame)
            if let order = publication.cacheOrder, name.kind.isCache {
                cache.store(frame, order: order, for: ChannelKey(app: publication.app, name: name), now: time.monotonicNanoseconds)
            }
            guard let channel = channels[publication.app, name] else { continue }
            isReached = true
            // The subscribers have the event, and only their receipts are asked for.
            if frame.isEmpty {
                if let receipt = publication.receipt { wantReceipt(receipt, on: channel) }
                continue
            }
            let cutoff = publication.attendedUpTo?[loop] ?? .max
            if publication.audience != .everybody || channel.newestTicket > cutoff {
                deliveries += unsafe fanOut.deliver(frame, of: publication, attendedUpTo: cutoff, to: channel, sink: sink)
            } else {
                // A later event must not supersede an event that awaits receipts.
                let line = publication.cacheOrder == nil || publication.receipt != nil ? 0 : channel.line
                let excluded = slot(of: publication.excluded, in: channel)
                unsafe fanOut.append(frame, to: channel, excluding: excluded, line: line, sink: sink)
                deliveries += UInt64(channel.count - (excluded == nil ? 0 : 1))
            }
            if let receipt = publication.receipt { wantReceipt(receipt, on: channel) }
        }
        unsafe tally.fannedOut(deliveries)
        if isReached, publication.arrivedAt != 0 { latency.begin(publication) }
    }

    /// A subscriber's slot; nil if the connection is not subscribed to this channel.
    private func slot(of id: ConnectionID?, in channel: Channel) -> UInt32? {
        guard let id, id.loop == loop, let subscription = connection(id)?.subscriptions[channel.name],
            case .active(let active) = subscription.phase, active === channel
        else { return nil }
        return UInt32(id.slot)
    }

    /// Lifetime of a cache channel's last event, in seconds.
    package static let cacheSeconds = Int(EventCache.lifetimeSeconds)

    /// Data and remaining seconds of a cache channel's last event, as far as this loop knows; nil if nothing is cached.
    package func cachedEvent(app: Int, channel: ChannelName) -> (data: String, secondsLeft: Int)? {
        let key = ChannelKey(app: app, name: channel)
        guard let (frame, remaining) = cache.event(for: key, now: time.monotonicNanoseconds) else { return nil }
        let data = unsafe frame.withUnsafeBytes { frame in
            unsafe (try? parser.parse(Frame.payload(of: frame)))?.find("data")?.string
        }
        // Rounded up: a new event has the whole lifetime left.
        return data.map { ($0, Int((remaining + 999_999_999) / 1_000_000_000)) }
    }

    /// Sends a new subscriber of a cache channel the last event, or a cache miss.
    func sendCached(_ channel: ChannelName, to connection: Connection) {
        let key = ChannelKey(app: connection.app.index, name: channel)
        if let (frame, _) = cache.event(for: key, now: time.monotonicNanoseconds) { return sink.send(frame, to: connection.id) }
        send(ServerEvent.cacheMiss(channel: channel), to: connection.id)
        facts.note(app: connection.app.index, channel, .cacheMiss)
    }

    /// Ends a turn: writes the collected frames, or the next piece of them. The loop calls this at least a few times per second,
    /// and again soon while `hasMoreToWrite`.
    package func flush() {
        isBehind = unsafe fanOut.isGoingOut
        if !isBehind {
            closeDismissed()
            announcePresence()
            announceCounts()
            if nodes != nil { endTurnOfNodes() }
            sendReceiptPings()
            latency.goOut()
        }
        unsafe fanOut.flush(writesMax: writesPerPieceMax, sink: sink)
    }

    /// Part of the subscribers have been written to in this turn, others not yet.
    package var isGoingOut: Bool { unsafe fanOut.isGoingOut }
    /// `flush` has so few connections to write to that it need not wait for further publications.
    package var hasFewWrites: Bool { unsafe fanOut.hasFewWrites }
    /// `isGoingOut`, or something may have been collected since that turn began to go out.
    package var hasMoreToWrite: Bool { unsafe isBehind || !fanOut.isEmpty || !dismissed.isEmpty }

    /// Facts of this turn for webhooks, in order.
    package func takeFacts() -> [ChannelFact] { facts.take() }

    /// Hands over the reports of this turn before an answer is written. Whoever reads the answer may publish at once, through a loop that
    /// is faster than this one, and counts as present for that event.
    func reportBeforeAnswer() {
        guard let reporting, !reports.isEmpty else { return }
        reporting(takeReports())
    }

    /// Reports of this turn for delivery, in order.
    package func takeReports() -> [LoopReport] {
        if reports.isEmpty { return [] }
        defer { reports.removeAll() }
        return reports
    }

    // MARK: Between loops

    /// Handles one message of a sibling, of delivery or of this engine itself.
    package func receive(_ message: EngineMessage) {
        switch message {
        case .publish(let publication): fanOut(publication)
        case .join(let membership, let member): join(membership, member)
        case .leave(let membership, let user, let isSent): leave(membership, user: user, isSent: isSent)
        case .admitted(let memberships, let acknowledgement): admitted(memberships, acknowledgement: acknowledgement)
        case .refused(let membership, let refusal): refused(membership, refusal)
        case .announce(let app, let name, let frame):
            if let channel = channels[app, name] { unsafe fanOut.append(frame, to: channel, sink: sink) }
        case .occupancy(let app, let channel, let loop, let subscribers):
            assert(homeLoop(app: app, channel: channel) == self.loop, "loop \(self.loop) is not home of \(channel)")
            home.setOccupancy(app: app, channel: channel, loop: loop, subscribers: subscribers)
        case .audience(let id, let channel, let audience):
            connection(id)?.subscriptions[channel]?.audience = audience
        case .user(let message): receive(message)
        case .prove(let event, let connections): prove(event, by: connections)
        case .replay(let connection, let channel, let frames, let events):
            replay(frames, events: events, on: channel, to: connection)
        case .definitionsChanged: definitionsChanged()
        case .reportPresent(let mark): reportPresent(mark)
        case .appsChanged: adoptApps()
        case .expel(let expulsion): expel(expulsion)
        case .readmit(let app, let channel, let user): readmit(app: app, channel: channel, user: user)
        case .bound(let connection, let channel): bound(connection, channel: channel)
        case .terminate(let app, let user): endConnections(app: app, user: user)
        case .heard(let report): heard(report)
        case .answered(let answer): answered(answer)
        case .admission(let connection, let app, let isGranted): admission(of: connection, app: app, isGranted)
        case .query(let question): question(self)
        }
    }

    /// Sends to another loop's engine, or handles the message at once if the loop is this one.
    func send(_ message: EngineMessage, to loop: Int) {
        if loop == self.loop { receive(message) } else { post(loop, message) }
    }

    /// The loop that decides about the channel's members.
    package func homeLoop(app: Int, channel: ChannelName) -> Int {
        ChannelKey(app: app, name: channel).home(loopCount: loopCount)
    }

    func countStrayReceipt() {
        unsafe tally.strayReceipts += 1
    }

    func countClientEvent() {
        unsafe tally.clientEvents += 1
    }
}

@available(*, unavailable)
extension ChannelEngine: Sendable {}
