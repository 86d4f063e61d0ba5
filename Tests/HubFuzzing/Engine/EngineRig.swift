import HubChannels
import HubCore
import HubJSON
import HubTesting
import PusherProtocol

/// Engines of several loops on one thread. Their queues keep the order of each pair of loops and nothing else, as mailboxes promise.
final class EngineRig {
    static let key = "key"
    static let secret = "secret"
    /// Ids of the users who may sign in.
    static let users = ["s0", "s1", "s2"]
    /// Channels of every kind.
    static let channels = [
        "a", "private-a", "presence-a", "presence-b", "private-encrypted-a", "cache-a", "private-cache-a", "presence-cache-a",
        "private-encrypted-cache-a",
        "#server-to-user-s0", "#server-to-user-s1",
    ]

    let clock = ManualClock()
    let directory: AppDirectory
    private(set) var engines: [ChannelEngine] = []
    private(set) var clients: [EngineClient] = []
    private(set) var violation: String?
    let app: App
    /// Per cache channel: the data and time of the latest published event.
    private var cached: [String: (data: String, at: UInt64)] = [:]
    private var facts = FactStory()
    /// Prefix of the channels with a definition.
    private var definedPrefix = "presence-a"
    private let process = ProcessTag(random: 0xDEAD_BEEF_1234)
    private let parser: JSONParser
    private var queues: [[EngineMessage]]
    private var freeSlots: [[(slot: Int, generation: UInt32)]]
    private var nextSlots: [Int]
    private var attached: Set<String> = []
    private var lastTickets: [UInt64]
    private var lastCursors: [UInt64]
    private var published = 0

    init(loops: Int, parser: JSONParser, configure: (inout App) -> Void) {
        self.parser = parser
        var app = App(index: 0, id: "1", secrets: [Self.key: Self.secret])
        configure(&app)
        app.factKinds = [.occupied, .vacated, .memberAdded, .memberRemoved, .clientEvent, .cacheMiss, .subscriptionCount]
        self.app = app
        directory = AppDirectory([app])
        queues = Array(repeating: [], count: loops * loops)
        freeSlots = Array(repeating: [], count: loops)
        nextSlots = Array(repeating: 0, count: loops)
        lastTickets = Array(repeating: 0, count: loops)
        lastCursors = lastTickets
        for loop in 0..<loops {
            engines.append(
                ChannelEngine(
                    loop: loop, loopCount: loops, directory: directory, process: process, sink: RigSink(self, loop), time: clock,
                    traits: { [unowned self] in $0.text.hasPrefix(definedPrefix) ? ChannelTraits() : nil },
                    post: { [unowned self] to, message in
                        if to == loop { fail("a message to oneself") }
                        queues[loop * loops + to].append(message)
                    }))
        }
    }

    func fail(_ sentence: String) {
        if violation == nil { violation = sentence }
    }

    // MARK: Connections

    /// Opens a connection and its handshake. The engine closes one in excess at once.
    func open(_ loop: Int, key: String? = EngineRig.key, version: String? = "7") {
        let free = freeSlots[loop].popLast()
        let slot = free?.slot ?? nextSlots[loop]
        if free == nil { nextSlots[loop] += 1 }
        let id = ConnectionID(loop: loop, slot: slot, generation: (free?.generation ?? 0) + 1)
        clients.append(EngineClient(id, socketID: process.socketID(of: id), parser: parser) { [unowned self] in fail("\(id): \($0)") })
        engines[loop].open(id, key: key, version: version, origin: nil, client: Self.isPage(id) ? "js" : nil)
    }

    /// Reports a connection's end as the transport does, which frees its slot.
    func close(_ client: EngineClient) {
        engines[client.id.loop].closed(client.id, as: .abnormal)
        client.isGone = true
        freeSlots[client.id.loop].append((client.id.slot, client.id.generation))
        clients.removeAll { $0 === client }
    }

    /// Whether the client is a page, which is asked for receipts by an event.
    static func isPage(_ id: ConnectionID) -> Bool { id.slot % 2 == 1 }

    /// Answers like a page, or answers the newest PING like a WebSocket stack.
    func pong(_ client: EngineClient) {
        if Self.isPage(client.id) { say(client, "pusher:pong", data: [:]) }
        client.newestPing?.withUnsafeBytes { engines[client.id.loop].receivedPong($0, from: client.id) }
    }

    func say(_ client: EngineClient, _ bytes: [UInt8]) {
        bytes.withUnsafeBytes { engines[client.id.loop].received($0, from: client.id) }
    }

    func say(_ client: EngineClient, _ event: String, channel: String? = nil, data: JSONValue) {
        var members: [String: JSONValue] = ["event": .string(event), "data": data]
        members["channel"] = channel.map { .string($0) }
        say(client, JSONValue.object(members).serialized())
    }

    // MARK: Events

    /// Publishes like the HTTP API, with a name that contains loop and number.
    func publish(
        from loop: Int, on channels: [String], excluded: ConnectionID? = nil, audience: RoleSet = .everybody, attendedUpTo: [UInt64]? = nil
    ) {
        published += 1
        let data = "\"\(published)\\é"
        let frames = channels.compactMap { ChannelName(allowingServerToUser: $0) }.map {
            ChannelFrame($0, Frame.text(ServerEvent.event(name: "e/\(loop)/\(published)", channel: $0, data: DataLiteral(content: data))))
        }
        for entry in frames where entry.channel.kind.isCache { cached[entry.channel.text] = (data, clock.monotonicNanoseconds) }
        engines[loop].publish(
            Publication(
                app: 0, frames: OneOrMany(frames), excluded: excluded, audience: audience, attendedUpTo: attendedUpTo,
                receipt: published % 2 == 0 ? UInt64(published) : nil, cacheOrder: directory.nextOrder()))
    }

    /// Ends all connections of a signed-in user. Connections that sign in later are not affected.
    func terminate(_ user: String, from loop: Int, choice: Int) {
        settle(choice)
        engines[loop].terminate(app: app, user: user)
        settle(choice)
        for client in clients where client.user == user && !client.isClosed { fail("\(client.id) outlived the end of \(user)") }
    }

    /// Changes the definitions in force. One loop learns of it at once, the rest at the next audit.
    func define(_ prefix: String, heardBy loop: Int) {
        definedPrefix = prefix
        engines[loop].receive(.definitionsChanged)
    }

    // MARK: Messages between loops

    var waits: Bool { queues.contains { !$0.isEmpty } }

    /// Handles the oldest message of one pair of loops; `choice` selects the pair.
    func step(_ choice: Int) {
        let pairs = queues.indices.filter { !queues[$0].isEmpty }
        guard !pairs.isEmpty else { return }
        let pair = pairs[choice % pairs.count]
        let message = queues[pair].removeFirst()
        engines[pair % engines.count].receive(message)
    }

    func settle(_ choice: Int) {
        var count = choice
        repeat {
            while waits, violation == nil {
                step(count)
                count += 7
            }
            for engine in engines { engine.flush() }
        } while waits && violation == nil
        readReports()
    }

    /// Checks that the reports to delivery are free of contradictions.
    func readReports() {
        for (loop, engine) in engines.enumerated() {
            for report in engine.takeReports() {
                switch report {
                case .attached(let id, _, _, let channel, _, _, let ticket):
                    attached.insert("\(id.rawValue) \(channel)")
                    if ticket <= lastTickets[loop] { fail("ticket \(ticket) after \(lastTickets[loop])") }
                    lastTickets[loop] = ticket
                case .detached(let id, let channel):
                    if attached.remove("\(id.rawValue) \(channel)") == nil { fail("detached without being attached") }
                case .disconnected(let id, _): attached = attached.filter { !$0.hasPrefix("\(id.rawValue) ") }
                case .stillAttached(let id, _, _, let channel, _):
                    if !attached.contains("\(id.rawValue) \(channel)") { fail("still attached, but never before") }
                case .present(let id, _, _, let channel, _, _, let ticket, _, _):
                    if !attached.contains("\(id.rawValue) \(channel)") { fail("present, but never attached") }
                    if ticket > lastTickets[loop] { fail("present with ticket \(ticket) after \(lastTickets[loop])") }
                case .presentRead(_, let ticket):
                    if ticket != lastTickets[loop] { fail("all are present up to \(ticket), and the last ticket is \(lastTickets[loop])") }
                case .pinged(let events, let cursor):
                    if events.isEmpty { fail("a PING behind nothing") }
                    if cursor <= lastCursors[loop] { fail("cursor \(cursor) after \(lastCursors[loop])") }
                    lastCursors[loop] = cursor
                case .receipt(let id, let cursor, _):
                    if cursor > lastCursors[loop] { fail("\(id) has read \(cursor), which was never sent") }
                case .state, .definitionsRead, .proving, .replayed: continue
                }
            }
            for fact in engine.takeFacts() { if let sentence = facts.follow(fact) { fail(sentence) } }
        }
    }

    // MARK: What has to be true

    /// Settles, then compares the states of all parts: homes, loops, members' lists, and the receivers of a publish.
    func audit(_ choice: Int) {
        settle(choice)
        for engine in engines { engine.receive(.definitionsChanged) }
        readReports()
        for engine in engines { engine.receive(.reportPresent(mark: 1)) }
        readReports()
        let defined = clients.filter { !$0.isClosed }.flatMap { client in
            client.members.keys.filter { $0.hasPrefix(definedPrefix) }.map { "\(client.id.rawValue) \($0)" }
        }
        if attached != Set(defined) { fail("delivery believes that \(attached) are attached, not \(defined)") }
        // Done before the audit's own publishes, which make all caches equal.
        for engine in engines { for (name, event) in cached { audit(cache: name, event, of: engine) } }
        for name in Self.channels { audit(channel: name, choice) }
        for engine in engines {
            let own = clients.filter { $0.id.loop == engine.loop && !$0.isClosed }.count
            if engine.connectionCount != own { fail("loop \(engine.loop) has \(engine.connectionCount) connections, not \(own)") }
        }
        auditWatchers()
    }

    private func audit(cache name: String, _ event: (data: String, at: UInt64), of engine: ChannelEngine) {
        guard let channel = ChannelName(name) else { return }
        // Each loop counts from the message's arrival. If the message waited while the clock went on, the loop keeps the event longer than
        // the publisher expects.
        let isKept = clock.monotonicNanoseconds - event.at < UInt64(ChannelEngine.cacheSeconds) * 1_000_000_000
        let found = engine.cachedEvent(app: 0, channel: channel)
        if isKept, found?.data != event.data {
            fail("loop \(engine.loop) has cached \(found?.data ?? "nothing") of \(name), not \(event.data)")
        }
    }

    private func auditWatchers() {
        let there = Set(clients.filter { !$0.isClosed }.compactMap(\.user))
        for client in clients where !client.isClosed && app.watchlist {
            for user in client.watchlist where client.isOnline[user] != there.contains(user) {
                fail("\(client.id) believes that \(user) is \(client.isOnline[user].map { $0 ? "online" : "offline" } ?? "unknown")")
            }
        }
    }

    private func audit(channel name: String, _ choice: Int) {
        guard let channel = ChannelName(allowingServerToUser: name) else { return fail("no name: \(name)") }
        let there = clients.filter { !$0.isClosed && $0.members[name] != nil }
        for client in clients where !client.isClosed && (client.wanted[name] != nil) != (client.members[name] != nil) {
            fail("\(client.id) asked for \(name) and got neither an acknowledgement nor a refusal, or both")
        }
        let users = Set(there.compactMap { $0.wanted[name] ?? nil })
        let home = engines[engines[0].homeLoop(app: 0, channel: channel)].home
        let summary = home.summary(app: 0, channel: channel)
        if summary?.subscriptionCount ?? 0 != there.count {
            fail("\(name) has \(there.count) subscribers, its home counts \(summary?.subscriptionCount ?? 0)")
        }
        if facts.isOccupied(name) != (!there.isEmpty && channel.kind != .serverToUser) {
            fail("by its facts \(name) is \(facts.isOccupied(name) ? "" : "not ")occupied")
        }
        if app.subscriptionCount, !channel.kind.isPresence, !channel.kind.isEncrypted, channel.kind != .serverToUser {
            for client in there where client.counts[name] != there.count {
                fail("\(client.id) was told that \(name) has \(client.counts[name] ?? -1) subscribers, not \(there.count)")
            }
        }
        if channel.kind.isPresence {
            if Set(home.users(app: 0, channel: channel)) != users || summary?.userCount ?? 0 != users.count {
                fail("\(name) has \(users), its home says \(home.users(app: 0, channel: channel))")
            }
            for client in there where client.members[name] != users {
                fail("\(client.id) believes \(client.members[name] ?? []) in \(name), there are \(users)")
            }
        }
        for client in clients { client.forgetEvents() }
        publish(from: choice % engines.count, on: [name])
        settle(choice)
        let event = clients.first.map { _ in "e/\(choice % engines.count)/\(published)" } ?? ""
        for client in clients where !client.isClosed {
            let count = client.received[event] ?? 0
            if count != (client.members[name] == nil ? 0 : 1) { fail("\(client.id) got an event of \(name) \(count) times") }
        }
    }

    /// Closes all connections and checks that no state is left.
    func finish(_ choice: Int) {
        for client in clients { close(client) }
        settle(choice)
        if !attached.isEmpty { fail("still attached: \(attached)") }
        for engine in engines {
            if engine.connectionCount != 0 { fail("connections are left") }
            if !engine.home.summaries(app: 0, prefix: "").isEmpty { fail("channels are left at their home") }
            if engine.hasUsers { fail("users are left at their home") }
            for name in Self.channels {
                if let channel = ChannelName(allowingServerToUser: name), engine.keeps(app: 0, channel: channel) {
                    fail("\(name) is left on a loop")
                }
            }
        }
        if directory.connectionCount(app) != 0 { fail("the app has \(directory.connectionCount(app)) connections left") }
        if let sentence = facts.end() { fail(sentence) }
    }
}
