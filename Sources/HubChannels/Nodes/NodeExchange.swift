package import HubCore
package import PusherProtocol
internal import Synchronization

/// This node's messages to all nodes, and everybody's messages to this node's loops. Any thread.
package final class NodeExchange: Sendable {
    private struct Waiting {
        var nodes: Set<UInt64>
        let done: @Sendable (Bool) -> Void
    }

    private struct Behind {
        let shard: Int
        let place: StreamID
        let done: @Sendable (Bool) -> Void
    }

    private struct State {
        var waiting: [UInt64: Waiting] = [:]
        /// Those who wait until the loops have got the messages up to a place.
        var behind: [UInt64: Behind] = [:]
        /// Up to where the loops have got the messages, by shard.
        var places: [Int: StreamID] = [:]
        /// Up to where any run of this node has read, by shard.
        var read: [Int: StreamID] = [:]
        var lastTicket: UInt64 = 0
        /// News of members and channels that the streams told, by shard.
        var told: [Int: ToldChanges] = [:]
    }

    /// Time in which every living node does what it was asked for.
    package static let doneWithin: Duration = .seconds(5)
    /// Time in which the loops get what other nodes have sent before.
    static let caughtUpWithin: Duration = .seconds(1)

    private let directory: AppDirectory
    private let process: ProcessTag
    private let loopCount: Int
    private let versions: MessageVersions
    private let post: @Sendable (_ loop: Int, EngineMessage) -> Void
    private let report: @Sendable ([ChannelFact]) -> Void
    private let delivery: any NodeDeliveryPort
    private let way = Guarded<(any Backplane)?>(nil)
    private let state = Mutex(State())
    private let unreadable = Atomic<UInt64>(0)

    /// - Parameters:
    ///   - versions: versions of messages that are read.
    ///   - post: posts to any loop's engine, from any thread.
    ///   - report: takes facts for webhooks, in the order of each app's stream. All nodes get the same.
    ///   - delivery: takes the words of delivery.
    package init(
        directory: AppDirectory, process: ProcessTag, loopCount: Int, versions: MessageVersions = .known,
        delivery: any NodeDeliveryPort,
        post: @escaping @Sendable (_ loop: Int, EngineMessage) -> Void, report: @escaping @Sendable ([ChannelFact]) -> Void
    ) {
        self.directory = directory
        self.process = process
        self.loopCount = loopCount
        self.versions = versions
        self.post = post
        self.report = report
        self.delivery = delivery
    }

    /// The way to the other nodes; nil before `connect`.
    package var backplane: (any Backplane)? { way.withLock { $0 } }

    /// Messages that were skipped: of a kind, or in a version, that this build does not know. To this node they are lost messages.
    package var unreadableCount: UInt64 { unreadable.load(ordering: .relaxed) }

    /// Names the way. Call once, before the loops start.
    package func connect(_ backplane: any Backplane) {
        way.withLock { way in
            precondition(way == nil, "the way between the nodes is named twice")
            way = backplane
        }
    }

    // MARK: To all nodes

    /// Sends a word of delivery. All of them have one order, whatever app they concern.
    /// - Parameters:
    ///   - isKept: it waits for as long as it takes.
    ///   - done: called once, on any thread. True: all nodes will read it. False: they may, or may not.
    package func send(delivery bytes: [UInt8], isKept: Bool, _ done: @escaping @Sendable (Bool) -> Void) {
        guard let backplane, bytes.count + 2 <= backplane.messageBytesMax else { return done(false) }
        backplane.send(NodeMessage.delivery(bytes[...]).bytes(backplane.messageVersion), app: "", isKept: isKept, done)
    }

    /// Sends events, in order.
    /// - Parameter done: called once, on any thread. True: all nodes will fan them out.
    package func publish(_ events: [NodeMessage.Event], _ done: @escaping @Sendable (Bool) -> Void) {
        guard let backplane, !events.isEmpty else { return done(events.isEmpty) }
        let version = backplane.messageVersion
        let messages = events.map { (app: $0.app, bytes: NodeMessage.event($0).bytes(version)) }
        guard messages.allSatisfy({ $0.bytes.count <= backplane.messageBytesMax }) else { return done(false) }
        let left = Guarded((count: messages.count, isWhole: true))
        for message in messages {
            backplane.send(message.bytes, app: message.app, isKept: false) { isOnItsWay in
                let (count, isWhole) = left.withLock { left in
                    left.count -= 1
                    left.isWhole = left.isWhole && isOnItsWay
                    return left
                }
                if count == 0 { done(isWhole) }
            }
        }
    }

    /// Ends all connections of the user on all nodes.
    /// - Parameter done: called once, on any thread. True: every node that lives has ended its own. False: one has not answered in time.
    package func terminate(app: App, user: String, _ done: @escaping @Sendable (Bool) -> Void) {
        guard let backplane else { return done(false) }
        let ticket = state.withLock { state in
            state.lastTicket += 1
            state.waiting[state.lastTicket] = Waiting(nodes: backplane.living, done: done)
            return state.lastTicket
        }
        let message = NodeMessage.terminate(app: app.id, user: user, ticket: ticket).bytes(backplane.messageVersion)
        backplane.send(message, app: app.id, isKept: false) { [weak self] isOnItsWay in
            if !isOnItsWay { self?.end(ticket, isDone: false) }
        }
        Task { [weak self] in
            try? await Task.sleep(for: Self.doneWithin)
            self?.end(ticket, isDone: false)
        }
    }

    private func end(_ ticket: UInt64, isDone: Bool) {
        state.withLock { $0.waiting.removeValue(forKey: ticket) }?.done(isDone)
    }

    /// The node has done what the tickets ask for, or is dead. Nil: all tickets.
    private func heard(from node: UInt64, ticket: UInt64?) {
        let done = state.withLock { state -> [Waiting] in
            var done: [Waiting] = []
            for key in ticket.map({ [$0] }) ?? Array(state.waiting.keys) {
                state.waiting[key]?.nodes.remove(node)
                if state.waiting[key]?.nodes.isEmpty == true, let waiting = state.waiting.removeValue(forKey: key) { done.append(waiting) }
            }
            return done
        }
        for waiting in done { waiting.done(true) }
    }

    /// Waits until the loops have got every message of the app that was sent before the call, on any node.
    /// - Returns: false: not in time.
    private func catchUp(_ app: App) async -> Bool {
        guard let backplane, let place = await backplane.lastMessage(app: app.id) else { return false }
        let shard = backplane.shard(of: app.id)
        return await withCheckedContinuation { waiter in
            let ticket = state.withLock { state -> UInt64? in
                if place <= state.places[shard] ?? .zero { return nil }
                state.lastTicket += 1
                state.behind[state.lastTicket] = Behind(shard: shard, place: place) { waiter.resume(returning: $0) }
                return state.lastTicket
            }
            guard let ticket else { return waiter.resume(returning: true) }
            Task { [weak self] in
                try? await Task.sleep(for: Self.caughtUpWithin)
                self?.state.withLock { $0.behind.removeValue(forKey: ticket) }?.done(false)
            }
        }
    }

    /// Asks a loop once it has got every message of the app that was sent before the call, on any node.
    /// - Parameter question: called once. Nil: the messages do not come in time; on any thread then.
    package func ask(loop: Int, after app: App, _ question: @escaping @Sendable (ChannelEngine?) -> Void) {
        Task { [weak self] in
            guard let self, await catchUp(app) else { return question(nil) }
            post(loop, .query { question($0) })
        }
    }

    // MARK: From all nodes

    /// Hands what was read to the loops, in order. One thread for each shard.
    package func take(_ shard: Int, _ news: [NodeNews], _ position: StreamID) {
        var (startsEpoch, isWhole) = (false, false)
        var facts: [ChannelFact] = []
        var announcements: [[Announcement]] = Array(repeating: [], count: loopCount)
        for news in news {
            switch news {
            case .message(let origin, let place, let bytes): if let fact = take(bytes, of: origin, at: place) { facts.append(fact) }
            case .gap(let origin, _): delivery.gap(origin)
            case .announcement(let announcement):
                if case .dead(let node) = announcement.event {
                    heard(from: node, ticket: nil)
                    delivery.died(node)
                }
                if announcement.standing != .confirmed, let home = home(of: announcement) { announcements[home].append(announcement) }
                if let fact = fact(announcement, shard) { facts.append(fact) }
            case .earlier(let announcement):
                // A run that begins anew has read what lies before its death.
                guard announcement.id > state.withLock({ $0.read[shard] ?? .zero }) else { continue }
                if let fact = fact(announcement, shard) { facts.append(fact) }
            case .newEpoch, .newRun:
                (startsEpoch, isWhole) = (true, news == .newRun)
                if !isWhole, shard == backplane?.shard(of: "") { delivery.startsEpoch() }
                // A run does not know what it missed.
                if isWhole { state.withLock { $0.told[shard] = nil } }
                for loop in announcements.indices { announcements[loop] = [] }
            }
        }
        for loop in 0..<loopCount {
            let report = NodeReport(
                shard: shard, position: position, startsEpoch: startsEpoch, isWhole: isWhole, announcements: announcements[loop])
            post(loop, .heard(report))
        }
        let caughtUp = state.withLock { state in
            state.places[shard] = position
            if position > .zero { state.read[shard] = position }
            let caughtUp = state.behind.filter { $0.value.shard == shard && $0.value.place <= position }
            for ticket in caughtUp.keys { state.behind[ticket] = nil }
            return caughtUp.values
        }
        for waiter in caughtUp { waiter.done(true) }
        if !facts.isEmpty { self.report(facts) }
    }

    /// The announcement for the app's webhooks.
    private func fact(_ announcement: Announcement, _ shard: Int) -> ChannelFact? {
        guard let place = announcement.place, let app = directory.app(id: place.app), let channel = ChannelName(place.channel) else {
            return nil
        }
        let event: ChannelFact.Event
        switch announcement.event {
        case .added(let user, _): event = .memberAdded(user: user)
        case .removed(let user): event = .memberRemoved(user: user)
        case .occupied: event = .occupied
        case .vacated: event = .vacated
        case .count(let count):
            // The end of a node is told of all channels that it had.
            guard HomeRegistry.tellsCounts(of: channel, in: app) else { return nil }
            event = .subscriptionCount(count)
        case .info, .dead: return nil
        }
        guard let fact = fact(app, channel, event, announcement.id) else { return nil }
        return state.withLock { $0.told[shard, default: ToldChanges()].isNews(announcement) } ? fact : nil
    }

    /// Nil where the app wants no such fact.
    private func fact(_ app: App, _ channel: ChannelName, _ event: ChannelFact.Event, _ position: StreamID) -> ChannelFact? {
        guard app.factKinds.contains(event.kind) else { return nil }
        return ChannelFact(app: app.index, channel: channel, event: event, position: position)
    }

    /// Tells all nodes what only this node's loop knows, so that the owner of the app's webhooks learns it: a cache that was found empty.
    package func report(_ facts: [ChannelFact]) {
        guard let backplane else { return }
        for fact in facts where fact.event == .cacheMiss {
            let app = directory.table.apps[fact.app].id
            backplane.keep(.cacheMiss(app: app, channel: fact.channel), app: app)
        }
    }

    /// Hands answers about members to the loops. Any thread.
    package func take(_ answers: [MemberAnswer]) {
        for answer in answers {
            switch answer {
            case .online(_, let ticket, _, _): post(HomeOfNodes.loop(of: ticket), .answered(answer))
            case .admitted(let place, _, let ticket, _) where place.channel.isEmpty:
                post(HomeOfNodes.loop(of: ticket), .answered(answer))
            default:
                guard let home = home(of: answer.place, user: nil) else { continue }
                post(home, .answered(answer))
            }
        }
    }

    private func home(of announcement: Announcement) -> Int? {
        guard let place = announcement.place else { return nil }
        switch announcement.event {
        case .added(let user, _), .removed(let user): return home(of: place, user: user)
        case .info, .occupied, .vacated, .count: return home(of: place, user: nil)
        case .dead: return nil
        }
    }

    /// - Parameter user: decides where the place is that of an app's signed-in users.
    private func home(of place: MemberPlace, user: String?) -> Int? {
        guard let app = directory.app(id: place.app) else { return nil }
        if place.channel.isEmpty { return user.map { UserKey(app: app.index, user: $0).home(loopCount: loopCount) } }
        guard let name = ChannelName(allowingServerToUser: place.channel) else { return nil }
        return ChannelKey(app: app.index, name: name).home(loopCount: loopCount)
    }

    // MARK: Connections

    /// Asks whether the app has room for one more connection on all nodes. The answer is an `admission`.
    func admit(_ connection: ConnectionID, _ app: App) {
        backplane?.admit(app: app.id, limit: app.connectionsMax) { [post, index = app.index] isGranted in
            post(connection.loop, .admission(connection, app: index, isGranted))
        }
    }

    func count(_ app: App) { backplane?.count(app: app.id) }

    func release(_ app: App) { backplane?.release(app: app.id) }

    /// - Returns: what the app's webhooks are to tell of the message.
    private func take(_ bytes: [UInt8], of origin: UInt64, at position: StreamID) -> ChannelFact? {
        switch NodeMessage(bytes, versions) {
        case .event(let event): return take(event, at: position)
        case .cacheMiss(let app, let channel):
            return directory.app(id: app).flatMap { fact($0, channel, .cacheMiss, position) }
        case .terminate(let app, let user, let ticket): terminate(app: app, user: user, ticket: ticket, asker: origin)
        case .done(let node, let ticket): if node == backplane?.node { heard(from: origin, ticket: ticket) }
        case .delivery(let bytes): if !delivery.take(bytes, of: origin) { unreadable.add(1, ordering: .relaxed) }
        case nil: unreadable.add(1, ordering: .relaxed)
        }
        return nil
    }

    private func take(_ event: NodeMessage.Event, at position: StreamID) -> ChannelFact? {
        guard let app = directory.app(id: event.app) else { return nil }
        let frames: OneOrMany<ChannelFrame> =
            if event.isClients, let channel = event.channels.first {
                [
                    ChannelFrame(
                        channel, Frame.text(ServerEvent.event(name: event.name, channel: channel, data: event.data, userID: event.user)))
                ]
            } else {
                ServerEvent.eventFrames(name: event.name, channels: event.channels, data: event.data)
            }
        let isCached = !event.isClients && event.channels.contains { $0.kind.isCache }
        let publication = Publication(
            app: app.index, frames: frames, excluded: event.excluded.flatMap(process.connection(of:)),
            cacheOrder: isCached ? directory.nextOrder() : nil, way: event.isClients ? .client : .direct)
        for loop in 0..<loopCount { post(loop, .publish(publication)) }
        guard event.isClients, app.factKinds.contains(.clientEvent), let channel = event.channels.first, let sender = event.excluded else {
            return nil
        }
        let content = ChannelFact.Event.clientEvent(name: event.name, data: event.data.content, socketID: sender, user: event.user)
        return fact(app, channel, content, position)
    }

    private func terminate(app: String, user: String, ticket: UInt64, asker: UInt64) {
        let done = NodeMessage.done(node: asker, ticket: ticket)
        let left = Guarded(loopCount)
        for loop in 0..<loopCount {
            if let app = directory.app(id: app) { post(loop, .terminate(app: app.index, user: user)) }
            post(
                loop,
                .query { [weak self] _ in
                    let isLast = left.withLock { left in
                        left -= 1
                        return left == 0
                    }
                    if isLast { self?.backplane?.keep(done, app: app) }
                })
        }
    }
}

extension Backplane {
    /// Sends a message that the others go by.
    fileprivate func keep(_ message: NodeMessage, app: String) { send(message.bytes(messageVersion), app: app, isKept: true) { _ in } }
}
