import HubChannels
import HubCore
import HubDelivery
import HubScaleOut
import HubTesting
import PusherProtocol
import RedisModel

/// Members of presence channels over several nodes: the homes, the wishes and the scripts that ship, around a modelled Redis.
///
/// People come to any node, with one or two devices, and go. Nodes, Redis and the ways between them go wrong. The judge is the truth of
/// every connection, and each observer hears what a client library hears.
package final class MemberSimulation {
    enum Action {
        case turn(Int, life: Int)
        case arrived(Int, life: Int)
        case replied(Int, life: Int, Result<[RedisReply], RedisFailure>)
        case read(Int, life: Int)
        case tick(Int, life: Int)
        case start(Int, life: Int)
        case leave(Int, life: Int)
        case ended(Int, life: Int)
        case joined(Int)
        case closed(Int)
        case device(Int, step: Int)
        case connect(Int, step: Int)
        case check
        case fault
        case boot(Int)
        case roll(Int)
        case resume(Int, life: Int)
        case slow(Int, life: Int)
        case moves(Int, life: Int)
        case heal(Int)
        case redisBack
        case owner
    }

    static let prefix = "tandem"
    static let epochKey = "tandem:epoch"
    /// For how long after a beat was sent its node hands on what it reads, in milliseconds.
    static let actsFor: Int64 = 3000
    private static let origin = ContinuousClock.now

    let settings: MemberSettings
    var random: SeededRandom
    var now: Int64 = 0
    var queue = ActionQueue<Action>()
    package internal(set) var report: SimulationReport

    // The world.
    let app: App
    var places: [MemberPlace] = []
    var users: [MemberUser] = []
    var devices: [MemberDevice] = []
    var sockets: [MemberSocket] = []
    var nodes: [MemberNode] = []
    var lastRun: UInt64 = 0
    var lastWord = 0
    var departures = 0
    var isEnding = false
    /// Until when something is wrong.
    var faultUntil: Int64 = 0
    /// The node that restarts in a rolling restart.
    var rolling: Int?
    /// When a node was killed while all was well.
    var lonelyKill = Int64.min
    /// When Redis last lost its memory.
    var lossAt = Int64.min / 2
    /// The last loss was a failover, after which nodes wrote on in the old memory for a moment.
    var isSplit = false

    // Redis.
    /// The newest one. A node may still be at the one before.
    var redis: RedisModel
    var isRedisUp = true
    /// Up to where the judge has read the stream, of which memory.
    var judged: (events: String, position: StreamID) = ("", .zero)
    /// As each node's webhooks were told, by channel and user; of the channel itself without one.
    var facts: [[Int: [String: Bool]]] = []
    /// The node that tells the app's server, up to where it did, and whom it told there or gone last.
    var owner: Int?
    var mark: WebhookMark?
    var told: [String: Bool] = [:]

    package init(_ settings: MemberSettings) {
        self.settings = settings
        random = SeededRandom(state: settings.seed)
        report = SimulationReport(seed: settings.seed)
        redis = RedisModel()
        var app = App(index: 0, id: "1", secrets: ["k": "s"])
        app.factKinds = [.occupied, .vacated, .memberAdded, .memberRemoved]
        app.presenceMembersMax = 1000
        self.app = app
        for number in 0..<settings.channels {
            places.append(MemberPlace(app: "1", channel: "presence-\(number)"))
            for _ in 0..<(number == 0 ? settings.usersOfFirst : settings.usersPerChannel) {
                for _ in 0...(users.count % 3 == 0 ? 1 : 0) { devices.append(MemberDevice(user: users.count)) }
                users.append(MemberUser(name: "u\(users.count)", channel: number))
            }
        }
        loadScripts()
        facts = Array(repeating: [:], count: settings.nodes)
        for index in 0..<settings.nodes {
            lastRun += 1
            nodes.append(MemberNode(index: index, run: lastRun, life: 0, app: app, redis: redis, broken: settings.broken))
            schedule(0, .start(index, life: 0))
        }
    }

    func schedule(_ delay: Int64, _ action: Action) { queue.add(now + delay, action) }
    func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }
    func between(_ low: Int64, _ high: Int64) -> Int64 { Int64.random(in: low...high, using: &random) }
    var instant: ContinuousClock.Instant { Self.origin + .milliseconds(now) }
    var nanoseconds: UInt64 { 1_000_000_000 + UInt64(now) * 1_000_000 }

    /// - Parameter stopsAtFirst: ends with the first thing that has to be 0 and is not.
    package func run(stopsAtFirst: Bool = false) -> SimulationReport {
        for device in devices.indices { schedule(between(1000, 20_000), .connect(device, step: 0)) }
        schedule(1000, .check)
        schedule(0, .owner)
        if settings.faultInterval > 0 { schedule(20_000, .fault) }
        while let (at, action) = queue.removeFirst() {
            now = at
            report.steps += 1
            perform(action)
            if report.violationCount > 100 || stopsAtFirst && !report.isClean { break }
            if departures >= settings.departures, !isEnding { isEnding = true }
            if isEnding, isCalm(for: 30_000) { break }
        }
        report.events = departures
        report.simulatedMilliseconds = now
        return report
    }

    func perform(_ action: Action) {
        if let (index, life) = place(of: action) {
            let node = nodes[index]
            guard node.isUp, node.life == life else { return }
            if node.isStopped { return node.waiting.append(action) }
        }
        switch action {
        case .turn(let node, _): turn(nodes[node])
        case .arrived(let node, _): arrived(nodes[node])
        case .replied(let node, _, let result): replied(nodes[node], result)
        case .read(let node, _): read(nodes[node])
        case .tick(let node, _): tick(nodes[node])
        case .start(let node, _): start(nodes[node])
        case .leave(let node, _): leave(nodes[node])
        case .ended(let node, _): ended(nodes[node])
        case .joined(let socket): joined(socket)
        case .closed(let socket): closed(socket, isSent: false)
        case .device(let device, let step): if devices[device].step == step { live(device) }
        case .connect(let device, let step): if devices[device].step == step { connect(device) }
        case .check: check()
        case .fault: fault()
        case .boot(let node): boot(node)
        case .roll(let node): roll(node)
        case .resume(let node, let life): if nodes[node].life == life { resume(nodes[node]) }
        case .slow(let node, _): slow(nodes[node])
        case .moves(let node, _): moves(nodes[node])
        case .heal(let node): heal(nodes[node])
        case .redisBack: redisBack()
        case .owner: followOwner()
        }
    }

    /// The node that has to run for the action, and its process.
    private func place(of action: Action) -> (Int, Int)? {
        switch action {
        case .turn(let node, let life), .arrived(let node, let life), .replied(let node, let life, _), .read(let node, let life),
            .tick(let node, let life), .start(let node, let life), .leave(let node, let life), .ended(let node, let life),
            .slow(let node, let life),
            .moves(let node, let life):
            (node, life)
        case .joined(let socket), .closed(let socket): (sockets[socket].node, sockets[socket].life)
        default: nil
        }
    }

    /// A greeting loads the scripts, with a rule broken where one is to be.
    func loadScripts() {
        for script in ScaleOutScripts.all { redis.load(settings.broken?.edit(script.body) ?? script.body, as: script) }
    }

    /// Carries out a node's command at Redis, at once. The judge reads along.
    func perform(_ command: RedisCommand, _ node: MemberNode) -> RedisReply {
        node.redis.now = ManualClock.start + now
        let reply = node.redis.perform(command)
        if command.words.first == Array("EVALSHA".utf8) { readAlong(node.redis) }
        return reply
    }
}
