import HubChannels
import HubCore
import HubScaleOut
import HubTesting

/// A node's ways to Redis: the link that writes, as `RedisLink` is, and the connection that reads, as `EventStream` does.
extension MemberSimulation {
    private static let callMax: Int64 = 900
    private static let retryEvery: Int64 = 250
    private static let earlierMilliseconds: UInt64 = 10_000

    func reaches(_ node: MemberNode) -> Bool { isRedisUp && !node.isCut }

    // MARK: The link

    func call(
        _ node: MemberNode, _ make: @escaping (NodeGreeting) -> [RedisCommand],
        _ done: @escaping (Result<[RedisReply], RedisFailure>) -> Void
    ) {
        node.calls.append(MemberNode.Call(make: make, done: done))
        depart(node)
    }

    /// Calls that wait travel together, and the next ones after their replies.
    func depart(_ node: MemberNode) {
        guard node.travelling == nil, !node.calls.isEmpty else { return }
        node.travelling = (node.calls, [])
        node.calls = []
        if now < node.nextTryAt { return schedule(0, .replied(node.index, life: node.life, .failure(node.failure))) }
        schedule(between(1, 3), .arrived(node.index, life: node.life))
    }

    /// The calls are at Redis.
    func arrived(_ node: MemberNode) {
        guard node.travelling != nil else { return }
        guard isRedisUp, !node.isUnheard else {
            node.greeting = nil
            return schedule(isRedisUp ? Self.callMax : 0, .replied(node.index, life: node.life, .failure(.lost("it is away"))))
        }
        if node.greeting == nil {
            let reply = perform(greets(node, writes: true), node)
            do throws(RedisFailure) { node.greeting = try NodeGreeting(reply, prefix: Self.prefix, node: node.run) } catch {
                return schedule(between(1, 3), .replied(node.index, life: node.life, .failure(error)))
            }
        }
        guard let greeting = node.greeting, let calls = node.travelling?.calls else { return }
        var (counts, replies) = ([Int](), [RedisReply]())
        for call in calls {
            let commands = call.make(greeting)
            counts.append(commands.count)
            replies += commands.map { perform($0, node) }
        }
        node.travelling?.counts = counts
        // The commands are carried out, and nobody hears of it.
        let isLost = node.isDeaf || chance(1) && chance(30)
        schedule(
            isLost ? Self.callMax : between(1, 3),
            .replied(node.index, life: node.life, isLost ? .failure(.lost("no reply came")) : .success(replies)))
    }

    func replied(_ node: MemberNode, _ result: Result<[RedisReply], RedisFailure>) {
        guard let (calls, counts) = node.travelling else { return }
        node.travelling = nil
        switch result {
        case .failure(let failure):
            if now >= node.nextTryAt { (node.nextTryAt, node.failure) = (now + Self.retryEvery, failure) }
            node.greeting = nil
            for call in calls { call.done(.failure(failure)) }
        case .success(let replies):
            node.nextTryAt = 0
            if replies.contains(where: endsGreeting) { node.greeting = nil }
            var rest = replies[...]
            for (call, count) in zip(calls, counts) {
                call.done(.success(Array(rest.prefix(count))))
                rest = rest.dropFirst(count)
            }
        }
        depart(node)
    }

    private func endsGreeting(_ reply: RedisReply) -> Bool {
        guard case .error(.refused(let code, _)) = reply else { return false }
        return [ScriptRefusal.epoch, ScriptRefusal.link].contains(code)
    }

    private func greets(_ node: MemberNode, writes: Bool) -> RedisCommand {
        lastWord += 1
        return NodeGreeting.call(
            process: node.redis.process, candidate: "memory\(lastWord)", prefix: Self.prefix, database: "", node: node.run, writes: writes)
    }

    // MARK: Wishes

    func flush(_ node: MemberNode) {
        guard var batch = node.way.wishes.withLock({ $0.take(now: instant) }) else { return }
        call(node) { [self] greeting in
            node.way.wishes.withLock { $0.commands(for: &batch, greeting, now: instant) }
        } _: { [self] result in
            let (answers, succeeds) = node.way.wishes.withLock { $0.answered(batch, result, now: instant) }
            for answer in answers {
                _ = node.home.answered(answer) { _ in 0 }
                planTurn(node)
            }
            if succeeds { flush(node) }
        }
    }

    // MARK: Reading

    func planRead(_ node: MemberNode, after delay: Int64) {
        if let at = node.readAt, at <= now + delay { return }
        node.readAt = now + delay
        schedule(delay, .read(node.index, life: node.life))
    }

    func read(_ node: MemberNode) {
        guard !node.isDead, let at = node.readAt, at <= now else { return }
        node.readAt = nil
        if let held = node.held { return handOn(node, held) }
        guard reaches(node) else {
            node.isReading = false
            return planRead(node, after: Self.retryEvery)
        }
        if !node.isReading {
            guard let greeting = try? NodeGreeting(perform(greets(node, writes: false), node), prefix: Self.prefix, node: node.run) else {
                return
            }
            let known = node.keys
            node.isReading = true
            node.keys = greeting.keys
            if known == nil {
                let last = perform(RedisCommand("XREVRANGE", texts: [greeting.keys.events, "+", "-", "COUNT", "1"]), node)
                node.beganAt = last.array?.first?.array?.first?.text.flatMap(StreamID.init) ?? .zero
                let since = node.beganAt.milliseconds - min(node.beganAt.milliseconds, Self.earlierMilliseconds)
                node.position = settings.broken == .startsAtEnd ? node.beganAt : StreamID(milliseconds: since)
                return planRead(node, after: 1)
            }
            if known != greeting.keys {
                (node.position, node.beganAt) = (.zero, .zero)
                hear(node, [.newEpoch(greeting.keys.epoch)], .zero)
            }
        }
        guard let keys = node.keys else { return }
        guard perform(RedisCommand("GET", texts: [Self.epochKey]), node).text == keys.epoch else {
            node.isReading = false
            return planRead(node, after: Self.retryEvery)
        }
        let reply = perform(RedisCommand("XREAD COUNT 1000 STREAMS", texts: [keys.events, "\(node.position)"]), node)
        let entries = (try? StreamEntry.read(reply))?.first?.entries ?? []
        planRead(node, after: 500)
        if let last = entries.last { handOn(node, (entries, last.id)) }
    }

    /// A node that has stood still may be dead for the others: it waits until a beat of late has been answered.
    private func handOn(_ node: MemberNode, _ read: (entries: [StreamEntry], position: StreamID)) {
        if node.isDead { return }
        guard now < node.beatAt + Self.actsFor else {
            node.held = read
            return planRead(node, after: 20)
        }
        node.held = nil
        node.position = read.position
        let news = read.entries.compactMap { entry in
            entry.announcement.map { entry.id <= node.beganAt ? NodeNews.earlier($0) : .announcement($0) }
        }
        hear(node, news, read.position)
        planRead(node, after: 500)
    }

    /// As `NodeExchange` and `RedisNode` take news: the homes first.
    func hear(_ node: MemberNode, _ news: [NodeNews], _ position: StreamID) {
        var (startsEpoch, isWhole, announcements) = (false, false, [Announcement]())
        for news in news {
            switch news {
            case .announcement(let announcement):
                if announcement.standing != .confirmed, announcement.place != nil { announcements.append(announcement) }
                if settings.broken == .toldAgain || node.told.isNews(announcement) { noteFact(announcement, node) }
            case .earlier(let announcement):
                if announcement.id > node.readUpTo, node.told.isNews(announcement) { noteFact(announcement, node) }
            case .newEpoch, .newRun:
                (startsEpoch, isWhole) = (true, news == .newRun)
                if isWhole {
                    node.told = ToldChanges()
                    facts[node.index] = [:]
                }
                announcements = []
            case .message, .gap: break
            }
        }
        let report = NodeReport(
            shard: 0, position: position, startsEpoch: startsEpoch, isWhole: isWhole, announcements: announcements)
        node.home.heard(report, now: nanoseconds) { _ in 0 }
        if position > .zero { node.readUpTo = position }
        for announcement in announcements {
            if case .removed(let user) = announcement.event, let place = announcement.place {
                let at = settings.broken == .heardIsOver ? instant - .seconds(5) : instant
                node.way.wishes.withLock { $0.removed(user, from: place, now: at) }
            }
        }
        for case .newEpoch(let epoch) in news {
            node.way.wishes.withLock { $0.restart(in: epoch, now: instant) }
            flush(node)
        }
        planTurn(node)
    }
}
