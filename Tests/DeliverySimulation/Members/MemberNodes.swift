import HubChannels
import HubCore
import HubScaleOut
import HubTesting
import PusherProtocol

/// The life of a node, as `RedisNode` and `RedisBackplane` lead it: starts, beats, looks at the others, deaths and new runs.
extension MemberSimulation {
    private static let beatEvery: Int64 = 500

    /// Reads from the stream's end on, and beats for the first time.
    func start(_ node: MemberNode) {
        node.isDead = false
        node.keys = nil
        node.isReading = false
        node.held = nil
        node.watch = NodeWatch()
        guard reaches(node) else { return schedule(250, .start(node.index, life: node.life)) }
        node.readAt = nil
        planRead(node, after: 0)
        node.isBeating = true
        beat(node) { [self] succeeds in
            node.isBeating = false
            guard succeeds, let keys = node.keys else { return fail(node) }
            node.nextBeatAt = now + Self.beatEvery
            node.isConnected = true
            node.hasBegun = true
            node.wellSince = now
            if let rolling, rolling == node.index { schedule(1000, .roll(rolling + 1)) }
            node.way.wishes.withLock { $0.begin(in: keys.epoch, now: instant) }
            flush(node)
            schedule(between(0, 250), .tick(node.index, life: node.life))
        }
    }

    /// A start that failed is made again, by another run.
    private func fail(_ node: MemberNode) {
        node.isDead = true
        begin(node)
        schedule(250, .start(node.index, life: node.life))
    }

    /// Another run of the node, which has the former one's wishes.
    private func begin(_ node: MemberNode) {
        lastRun += 1
        node.run = lastRun
        node.greeting = nil
        node.way.wishes.withLock { $0 = $0.inherited }
        hear(node, [.newRun], .zero)
    }

    /// Every 250 ms, as the two loops of a node's run.
    func tick(_ node: MemberNode) {
        if node.isDead { return }
        schedule(250, .tick(node.index, life: node.life))
        flush(node)
        planTurn(node)
        guard !node.isBeating else { return }
        if now >= node.nextBeatAt {
            node.nextBeatAt = max(node.nextBeatAt + Self.beatEvery, now + Self.beatEvery / 2)
            node.isBeating = true
            beat(node) { [self] succeeds in if succeeds { settle(node) } else { node.isBeating = false } }
        } else if node.lingering > 0 {
            node.isBeating = true
            settle(node)
        }
    }

    private func settle(_ node: MemberNode) {
        guard node.lingering > 0 else {
            node.isBeating = false
            return
        }
        call(node, { [NodeBeat.settle($0)] }) { [self] result in
            guard let reply = value(result, node) else {
                node.isBeating = false
                return
            }
            if reply.integer == Int64(NodeBeat.pieceMax) { settle(node) } else { node.isBeating = false }
        }
    }

    /// The first reply; nil: the call failed, which ends the look.
    private func value(_ result: Result<[RedisReply], RedisFailure>, _ node: MemberNode) -> RedisReply? {
        do throws(RedisFailure) { return try (try result.get()).first?.value() } catch {
            node.watch.reset()
            if case .refused(ScriptRefusal.dead, _) = error { die(node) }
            return nil
        }
    }

    private func beat(_ node: MemberNode, _ done: @escaping (Bool) -> Void) {
        let began = now
        call(node) { [self] greeting in
            node.beatenAt = now
            return [NodeBeat.call(greeting, database: "", facts: [], sinceProbe: nil, blindAfter: 3000, versions: .known)]
        } _: {
            [self] result in
            guard let reply = value(result, node), let beat = try? NodeBeat(reply) else { return done(false) }
            node.beatAt = began
            node.lingering = beat.waiting
            if now - began > 1000 { node.watch.reset() }
            let dead = node.watch.look(beat.beats, me: node.run)
            declare(dead[...], beat.sweeping, node, done)
        }
    }

    private func declare(
        _ dead: ArraySlice<(node: UInt64, beat: Int64)>, _ unswept: [UInt64], _ node: MemberNode, _ done: @escaping (Bool) -> Void
    ) {
        guard let (other, last) = dead.first else { return sweep(unswept[...], node, done) }
        call(node, { [NodeBeat.declareDead(other, beat: last, $0)] }) { [self] result in
            guard let reply = value(result, node) else { return done(false) }
            declare(dead.dropFirst(), reply.integer == 1 ? unswept + [other] : unswept, node, done)
        }
    }

    private func sweep(_ dead: ArraySlice<UInt64>, _ node: MemberNode, _ done: @escaping (Bool) -> Void) {
        guard let other = dead.first else { return done(true) }
        call(node, { [NodeBeat.sweep(other, $0)] }) { [self] result in
            guard let reply = value(result, node) else { return done(false) }
            if reply.integer == 1 {
                node.lingering = max(node.lingering, 1)
                return sweep(dead, node, done)
            }
            sweep(dead.dropFirst(), node, done)
        }
    }

    /// The others have declared the node dead: its clients get 4200, and it takes part as another run.
    private func die(_ node: MemberNode) {
        guard !node.isDead, node.isConnected else { return }
        node.isDead = true
        node.isConnected = false
        node.wellSince = .max
        report.changes["nodes that found themselves dead", default: 0] += 1
        for socket in node.sockets { closed(socket, isSent: true, isLate: true) }
        schedule(between(0, 250), .start(node.index, life: node.life))
        begin(node)
    }

    // MARK: Turns of the home

    func planTurn(_ node: MemberNode) {
        guard !node.isTurnPlanned else { return }
        node.isTurnPlanned = true
        schedule(between(0, 2), .turn(node.index, life: node.life))
    }

    func turn(_ node: MemberNode) {
        node.isTurnPlanned = false
        for change in node.home.settlePresence(now: nanoseconds) {
            if !change.announcements.isEmpty { announced(change.announcements, node, change.channel) }
            let arrivals = change.arrivals[0] ?? []
            if !arrivals.isEmpty { acknowledged(arrivals.map { Int($0.serial) }, change.acknowledgement) }
        }
        _ = node.home.askAnew(now: nanoseconds)
        node.home.flushWishes()
        if node.way.isFlushed.withLock({ flag in
            defer { flag = false }; return flag
        }) {
            flush(node)
        }
    }

    // MARK: Starts and ends

    func boot(_ index: Int) {
        // A node without Redis does not start, and is started again.
        guard isRedisUp else { return schedule(between(500, 1500), .boot(index)) }
        lastRun += 1
        nodes[index] = MemberNode(index: index, run: lastRun, life: nodes[index].life + 1, app: app, redis: redis, broken: settings.broken)
        facts[index] = [:]
        schedule(0, .start(index, life: nodes[index].life))
    }

    /// Sends one client away after the other, and ends once Redis knows.
    func leave(_ node: MemberNode) {
        node.isLeaving = true
        node.wellSince = .max
        if let socket = node.sockets.first {
            closed(socket, isSent: true)
            return schedule(2, .leave(node.index, life: node.life))
        }
        schedule(1500, .ended(node.index, life: node.life))
    }

    func ended(_ node: MemberNode) {
        guard node.way.wishes.withLock({ $0.areEndsTold(now: instant) }) else {
            return schedule(50, .ended(node.index, life: node.life))
        }
        let isThere = node.isConnected && !node.isDead
        node.isDead = true
        call(node, { isThere ? [NodeBeat.end($0)] : [] }) { [self] _ in
            node.isUp = false
            schedule(between(1000, 3000), .boot(node.index))
        }
    }
}
