package import HubCore

/// The members and subscribers of a node as Redis shall know them: what is wished, what travels, and what a lost memory changes. A pure
/// value: wishes in, commands out; replies in, answers out.
///
/// Wishes of one turn travel together. Wishes without an answer are wished again, and all of them once Redis' memory was lost.
package struct MemberWishes: Sendable {
    fileprivate enum Key: Hashable, Sendable {
        case member(MemberPlace, user: ExactText)
        case subscribers(MemberPlace)
        case list(MemberPlace)
        case online(MemberPlace, ticket: UInt64)
        case known(MemberPlace, user: ExactText)
    }

    fileprivate enum Value: Sendable {
        case member(info: [UInt8]?, membersMax: Int, ticket: UInt64)
        case list(ticket: UInt64)
        case online([String])
        case known
        case noMember(lingerMilliseconds: Int, lingersAlways: Bool)
        case subscribers(Int, SubscriberNews)

        var isAbsence: Bool {
            switch self {
            case .noMember, .subscribers(0, _): true
            case .member, .list, .online, .known, .subscribers: false
            }
        }
    }

    /// Wishes that travel together.
    package struct Batch: Sendable {
        fileprivate let wishes: [(key: Key, value: Value)]
        /// Memory that the wishes were for when they were taken.
        fileprivate let epoch: String?
        /// The commands begin with the one that says that a memory was lost.
        fileprivate var tellsOfLoss = false
    }

    /// Wishes of one batch at most.
    static let batchMax = 512
    /// Time in which every living node writes its members into a new memory.
    static let rebuildMax: Duration = .seconds(6)
    /// For how long some nodes may be at a memory that others have left.
    static let splitMax: Duration = .seconds(MemberScripts.splitSeconds)
    /// Leavers that are remembered at most, and for how long if the node hears nothing of their end.
    private static let restingMax = 100_000
    private static let restingFor: Duration = .seconds(MemberScripts.lostSeconds)
    /// For how long a leaver is remembered once this node has heard of the end. Others may still be at a memory that has lost it.
    private static let heardFor: Duration = .seconds(5)

    private var wishes = Wishes<Key, Value>()
    private var isTravelling = false
    /// The node reads what the others announce.
    private var reads = false
    /// Epoch of the memory that the wishes are for, and of the one before.
    private var epoch: String?
    private var formerEpoch: String?
    /// Redis does not know yet that a memory was lost before this one.
    private var tellsOfLoss = false
    /// When absences from before a lost memory are wished.
    private var lateAt: ContinuousClock.Instant?
    /// Until when a node that stops waits for them to be told.
    private var toldBy: ContinuousClock.Instant?
    /// Leavers of whose end the node may not have heard yet, the first ones first, and until when they are remembered.
    private var resting: [(key: Key, until: ContinuousClock.Instant)] = []
    /// The same once the node has heard of it.
    private var heard: [(key: Key, until: ContinuousClock.Instant)] = []

    /// Nothing is wished.
    package init() {}

    /// The same for another run of the node, of which Redis knows nothing, and which does not read yet. It may begin in another memory.
    package var inherited: MemberWishes {
        var next = MemberWishes()
        (next.wishes, next.epoch) = (wishes.inherited, epoch)
        return next
    }

    // MARK: Wishes

    /// The node has its first connection of the user in the place, or another info of theirs.
    package mutating func join(_ place: MemberPlace, user: String, info: [UInt8]?, membersMax: Int, ticket: UInt64) {
        wishes.wish(
            .member(place, user: ExactText(user)), .member(info: info, membersMax: membersMax, ticket: ticket), isAbsence: false)
    }

    /// Asks for the list of the place's members.
    package mutating func list(_ place: MemberPlace, ticket: UInt64) { wishes.wish(.list(place), .list(ticket: ticket), isAbsence: true) }

    /// Asks which of the users are members of the place.
    package mutating func online(_ users: [String], in place: MemberPlace, ticket: UInt64) {
        wishes.wish(.online(place, ticket: ticket), .online(users), isAbsence: true)
    }

    /// The node's last connection of the user in the place is gone.
    package mutating func leave(_ place: MemberPlace, user: String, lingerMilliseconds: Int, lingersAlways: Bool) {
        let value = Value.noMember(lingerMilliseconds: lingerMilliseconds, lingersAlways: lingersAlways)
        wishes.wish(.member(place, user: ExactText(user)), value, isAbsence: true)
    }

    /// The node knew of the member in a memory that was lost, and the next one does not have the member. Their own node has died with it.
    /// The first node that says so tells the others.
    package mutating func missed(_ place: MemberPlace, user: String) {
        wishes.wishLost(.member(place, user: ExactText(user)), .noMember(lingerMilliseconds: 0, lingersAlways: false))
    }

    /// The node knew of the member in a memory that was lost, and the next one takes them for somebody new.
    package mutating func known(_ place: MemberPlace, user: String) {
        wishes.wish(.known(place, user: ExactText(user)), .known, isAbsence: true)
    }

    /// The node has another number of subscribers.
    package mutating func setSubscribers(_ place: MemberPlace, _ count: Int, tells: SubscriberNews) {
        wishes.wish(.subscribers(place), .subscribers(count, tells), isAbsence: count == 0)
    }

    // MARK: What is heard

    /// The node reads from now on. Wishes wait until then: nobody would hear of a change between an answer and the first place read.
    /// - Parameter epoch: of the memory that it reads.
    package mutating func begin(in epoch: String?, now: ContinuousClock.Instant) {
        reads = true
        if let epoch { enter(epoch, now: now) }
    }

    /// The node has heard that the user is gone.
    package mutating func removed(_ user: String, from place: MemberPlace, now: ContinuousClock.Instant) {
        let (key, until) = (Key.member(place, user: ExactText(user)), now + Self.heardFor)
        if wishes.heard(key, until: until) { heard.append((key, until)) }
    }

    /// Redis' memory was lost: everything is wished again.
    /// - Parameter epoch: of the new memory.
    package mutating func restart(in epoch: String, now: ContinuousClock.Instant) {
        // The link was first: the homes have just forgotten its answers.
        if epoch == self.epoch { wishes.again() }
        enter(epoch, now: now)
    }

    /// Stream and link meet a new memory one after the other. Whichever is first restarts the wishes.
    private mutating func enter(_ epoch: String, now: ContinuousClock.Instant) {
        guard epoch != self.epoch, epoch != formerEpoch else { return }
        if self.epoch != nil {
            wishes.restart(since: now - Self.splitMax)
            lateAt = now + Self.rebuildMax
            toldBy = now + Self.rebuildMax + .seconds(1)
            tellsOfLoss = true
        }
        (self.epoch, formerEpoch) = (epoch, self.epoch)
    }

    /// Whether a node that stops takes nothing with it that the others have to hear of a lost memory.
    package func areEndsTold(now: ContinuousClock.Instant) -> Bool { toldBy.map { $0 < now } ?? true || wishes.areEndsTold }

    // MARK: The way to Redis

    /// The wishes that travel next; nil: there are none, or some travel.
    package mutating func take(now: ContinuousClock.Instant) -> Batch? {
        if let lateAt, lateAt <= now {
            self.lateAt = nil
            wishes.releaseLate()
        }
        Self.forget(&resting, in: &wishes, now: now)
        Self.forget(&heard, in: &wishes, now: now)
        guard reads, !isTravelling else { return nil }
        let batch = wishes.take(most: Self.batchMax)
        isTravelling = !batch.isEmpty
        return batch.isEmpty ? nil : Batch(wishes: batch, epoch: epoch)
    }

    /// Forgets leavers whose time is over, and the first half where there are too many.
    private static func forget(
        _ leavers: inout [(key: Key, until: ContinuousClock.Instant)], in wishes: inout Wishes<Key, Value>, now: ContinuousClock.Instant
    ) {
        let over = leavers.count > restingMax ? leavers.count / 2 : leavers.prefix { $0.until <= now }.count
        if over == 0 { return }
        for leaver in leavers.prefix(over) { wishes.forget(leaver.key, at: max(now, leaver.until)) }
        leavers.removeFirst(over)
    }

    /// The batch as commands for a link with this greeting.
    package mutating func commands(for batch: inout Batch, _ greeting: NodeGreeting, now: ContinuousClock.Instant) -> [RedisCommand] {
        // The link may be greeted by the new memory before the stream tells of it.
        enter(greeting.keys.epoch, now: now)
        batch.tellsOfLoss = tellsOfLoss
        return (tellsOfLoss ? [greeting.call(MemberScripts.lost, [])] : [])
            + batch.wishes.map { [isOfAnother = batch.epoch != epoch] in
                // An end that meets another memory on its way is told later, if nobody has the member there.
                // A coming that was lost before some have read it is told as one that may be new.
                let isRepeated = wishes.isRepeated($0.key) && !(isOfAnother && $0.value.isAbsence)
                let isRecent = isRepeated && !$0.value.isAbsence && wishes.isRecent($0.key)
                return Self.call($0.key, $0.value, isRecent ? .recent : isRepeated ? .repeated : .new, greeting)
            }
    }

    /// How a wish stands to a memory that was lost, as scripts are told.
    private enum Standing: Int {
        case new, repeated
        /// Redis had it, and some nodes may not have heard of it.
        case recent
    }

    private static func call(_ key: Key, _ value: Value, _ standing: Standing, _ greeting: NodeGreeting) -> RedisCommand {
        func script(_ script: RedisScript, _ words: [[UInt8]]) -> RedisCommand { greeting.call(script, words) }
        func word(_ text: some CustomStringConvertible) -> [UInt8] { Array(text.description.utf8) }
        let repeated = word(standing.rawValue)
        return switch (key, value) {
        case (.member(let place, let user), .member(let info, let membersMax, _)):
            script(MemberScripts.join, [word(place), word(user.text), info ?? [], word(membersMax), repeated])
        case (.list(let place), .list(_)): script(MemberScripts.list, [word(place)])
        case (.known(let place, let user), .known): script(MemberScripts.known, [word(place), word(user.text)])
        case (.online(let place, _), .online(let users)): script(MemberScripts.online, [word(place)] + users.map(word))
        case (.member(let place, let user), .noMember(let linger, let lingersAlways)):
            script(MemberScripts.leave, [word(place), word(user.text), word(linger), repeated, word(lingersAlways ? 1 : 0)])
        case (.subscribers(let place), .subscribers(let count, let tells)):
            script(
                MemberScripts.subscribers,
                [
                    word(place), word(place.app), word(place.channel), word(count), word(tells.contains(.occupancy) ? 1 : 0),
                    word(tells.contains(.counts) ? 1 : 0), repeated,
                ])
        default: preconditionFailure("a wish of another kind than its key")
        }
    }

    /// Takes the replies to a batch's commands.
    /// - Parameters:
    ///   - result: one reply for each command, or why there are none.
    /// - Returns: answers for the homes; and whether every wish was carried out, so that the next ones may travel at once.
    package mutating func answered(
        _ batch: Batch, _ result: Result<[RedisReply], RedisFailure>, now: ContinuousClock.Instant
    ) -> (answers: [MemberAnswer], succeeds: Bool) {
        isTravelling = false
        guard case .success(let replies) = result else {
            for entry in batch.wishes { wishes.failed(entry.key) }
            return ([], false)
        }
        if batch.tellsOfLoss, (try? replies.first?.value()) != nil { tellsOfLoss = false }
        var (answers, succeeds) = ([MemberAnswer](), true)
        for (entry, reply) in zip(batch.wishes, replies.dropFirst(batch.tellsOfLoss ? 1 : 0)) {
            if case .error = reply {
                wishes.failed(entry.key)
                succeeds = false
                continue
            }
            // A memory that is lost now takes the end of this member with it, unless the others have heard of it already.
            let rests = if case .noMember = entry.value { reply.integer == 1 } else { false }
            let until = rests ? now + Self.restingFor : nil
            if let until { resting.append((entry.key, until)) }
            let toldAt = Self.isTold(entry.key, reply) ? now : nil
            if wishes.succeeded(entry.key, restsUntil: until, toldAt: toldAt), let answer = Self.answer(entry.key, entry.value, reply) {
                answers.append(answer)
            }
        }
        return (answers, succeeds)
    }

    /// Whether the call has told the others that the member came.
    private static func isTold(_ key: Key, _ reply: RedisReply) -> Bool {
        if case .member = key { reply.array?.last?.integer == 1 } else { false }
    }

    /// Nil for answers that nobody waits for.
    private static func answer(_ key: Key, _ value: Value, _ reply: RedisReply) -> MemberAnswer? {
        switch (key, value) {
        case (.member(let place, let user), .member(_, _, let ticket)):
            if reply.text == "full" { return .full(place, user: user.text, ticket: ticket) }
            return reply.array?.first?.text.flatMap(StreamID.init).map { .admitted(place, user: user.text, ticket: ticket, at: $0) }
        case (.list(let place), .list(let ticket)):
            guard let parts = reply.array, parts.count == 2, let id = parts[0].text.flatMap(StreamID.init), let words = parts[1].array
            else {
                return nil
            }
            var list: [Member] = []
            list.reserveCapacity(words.count / 2)
            for place in stride(from: 0, to: words.count - 1, by: 2) {
                guard let user = words[place].text, let info = words[place + 1].bytes else { continue }
                list.append(Member(user: user, info: info.isEmpty ? nil : info))
            }
            return .list(place, ticket: ticket, at: id, list)
        case (.online(let place, let ticket), .online(let users)):
            guard let parts = reply.array, parts.count == 2, let id = parts[0].text.flatMap(StreamID.init), let flags = parts[1].array,
                flags.count == users.count
            else { return nil }
            return .online(place, ticket: ticket, at: id, zip(users, flags).map { Online(user: $0, isOnline: $1.integer == 1) })
        default: return nil
        }
    }
}
