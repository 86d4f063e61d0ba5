import HubChannels
import HubCore
import HubScaleOut
import HubTesting
import HubWebhooks
import PusherProtocol
import RedisModel

/// One node: a process with the home of all channels, and what ships of its way to Redis. A kill takes all of it.
final class MemberNode {
    /// Commands on their way to Redis, made once it is known which memory they meet.
    struct Call {
        let make: (NodeGreeting) -> [RedisCommand]
        let done: (Result<[RedisReply], RedisFailure>) -> Void
    }

    let index: Int
    /// Names this run between nodes; a node that was declared dead takes another.
    var run: UInt64
    /// The process.
    let life: Int
    var isUp = true
    /// The run takes part. Otherwise new clients go elsewhere.
    var isConnected = false
    /// The process stands still.
    var isStopped = false
    /// It stands still most of the time, until then.
    var slowUntil: Int64 = 0
    /// It sends its clients away, and ends.
    var isLeaving = false
    /// Nothing comes from it to Redis, or from there to it.
    var isUnheard = false
    var isDeaf = false
    var cutAt: Int64 = 0
    var isCut: Bool { isUnheard || isDeaf }
    /// Listens: this process has taken part once.
    var hasBegun = false
    /// Since when it is well.
    var wellSince: Int64 = 0
    var waiting: [MemberSimulation.Action] = []

    let home: HomeRegistry
    let way: SimWay
    var told = ToldChanges()
    /// Webhooks' facts of this process.
    var facts = AppFacts(app: "1", heldMax: 10_000, recentBytesMax: 1 << 20)
    /// When it last took part.
    var actedAt: Int64 = 0
    var isTurnPlanned = false
    /// Open sockets that have asked to join.
    var sockets: [Int] = []

    // The link that writes.
    var greeting: NodeGreeting?
    var nextTryAt: Int64 = 0
    var failure = RedisFailure.lost("it was away")
    var calls: [Call] = []
    var travelling: (calls: [Call], counts: [Int])?

    // The connection that reads.
    var isReading = false
    var position = StreamID.zero
    /// The stream's end as this run began, and up to where any run has read.
    var beganAt = StreamID.zero
    var readUpTo = StreamID.zero
    var keys: ScaleOutKeys?
    var held: (entries: [StreamEntry], position: StreamID)?
    /// When it reads next.
    var readAt: Int64?

    // Signs of life.
    var watch = NodeWatch()
    var beatAt = Int64.min / 2
    /// When Redis had the last beat.
    var beatenAt = Int64.min / 2
    var nextBeatAt: Int64 = 0
    var isBeating = false
    var lingering = 0
    var isDead = false

    /// The server that it is connected to.
    var redis: RedisModel

    init(index: Int, run: UInt64, life: Int, app: App, redis: RedisModel, broken: MemberRule?) {
        (self.index, self.run, self.life, self.redis) = (index, run, life, redis)
        way = SimWay(broken: broken)
        home = HomeRegistry(loopCount: 1, apps: [app], facts: FactLog(kinds: [app.factKinds]), backplane: way)
    }
}

/// The way between nodes as a home sees it: wishes about members, and nothing else.
final class SimWay: HomesBackplane {
    let wishes = Guarded(MemberWishes())
    let isFlushed = Guarded(false)
    private let broken: MemberRule?

    init(broken: MemberRule?) { self.broken = broken }

    func join(_ place: MemberPlace, user: String, info: [UInt8]?, membersMax: Int, ticket: UInt64) {
        wishes.withLock { $0.join(place, user: user, info: info, membersMax: membersMax, ticket: ticket) }
    }

    func missed(_ place: MemberPlace, user: String) {
        if broken != .missedUnsaid { wishes.withLock { $0.missed(place, user: user) } }
    }

    func known(_ place: MemberPlace, user: String) {
        if broken != .knownUnsaid { wishes.withLock { $0.known(place, user: user) } }
    }

    func leave(_ place: MemberPlace, user: String, lingerMilliseconds: Int, lingersAlways: Bool) {
        wishes.withLock { $0.leave(place, user: user, lingerMilliseconds: lingerMilliseconds, lingersAlways: lingersAlways) }
    }

    func setSubscribers(_ place: MemberPlace, _ count: Int, tells: SubscriberNews) {
        wishes.withLock { $0.setSubscribers(place, count, tells: tells) }
    }

    func list(_ place: MemberPlace, ticket: UInt64) { wishes.withLock { $0.list(place, ticket: ticket) } }

    func online(_ users: [String], in place: MemberPlace, ticket: UInt64) {
        wishes.withLock { $0.online(users, in: place, ticket: ticket) }
    }

    func flush() { isFlushed.withLock { $0 = true } }
}
