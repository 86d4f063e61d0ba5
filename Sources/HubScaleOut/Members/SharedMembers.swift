package import HubCore
internal import Synchronization

/// The members and subscribers that this node has, as Redis shall know them. Any thread.
///
/// Wishes of one turn travel together. Wishes without an answer are wished again, and all of them once Redis' memory was lost.
package final class SharedMembers: Sendable {
    /// Up to this many members a leaver is told at once.
    package static let promptMembersMax = 100
    /// Up to this many subscribers, every new number is told at once; beyond, once in so many milliseconds.
    package static let promptCountsMax = 100
    static let countMilliseconds = 5_000
    /// Wishes that travel together.
    static let batchMax = 512

    private enum Key: Hashable, Sendable {
        case member(MemberPlace, user: ExactText)
        case subscribers(MemberPlace)
        case list(MemberPlace)
        case online(MemberPlace, ticket: UInt64)
    }

    private enum Value: Sendable {
        case member(info: [UInt8]?, membersMax: Int, ticket: UInt64)
        case list(ticket: UInt64)
        case online([String])
        case noMember(lingerMilliseconds: Int, lingersAlways: Bool)
        case subscribers(Int, SubscriberNews)
    }

    /// Time in which every living node writes its members into a new memory.
    static let rebuildMax: Duration = .seconds(6)
    /// Leavers that are remembered at most, and for how long if the node hears nothing of their end.
    private static let restingMax = 100_000
    private static let restingFor: Duration = .seconds(MemberScripts.lostSeconds)

    private struct State {
        var wishes = Wishes<Key, Value>()
        var isTravelling = false
        /// The node reads what the others announce.
        var reads = false
        /// The run after this one, which has the wishes.
        var successor: SharedMembers?
        /// Epoch of the memory that the wishes are for, and of the one before.
        var epoch: String?
        var formerEpoch: String?
        /// Redis does not know yet that a memory was lost before this one.
        var tellsOfLoss = false
        /// The batch that travels tells it first.
        var travelsWithLoss = false
        /// When absences from before a lost memory are wished.
        var lateAt: ContinuousClock.Instant?
        /// Leavers of whose end the node may not have heard yet, the first ones first, and until when they are remembered.
        var resting: [(key: Key, until: ContinuousClock.Instant)] = []
    }

    private let state = Mutex(State())
    private let link: RedisLink<NodeGreeting>
    private let answer: @Sendable ([MemberAnswer]) -> Void

    /// - Parameters:
    ///   - former: of the run before, whose wishes are this one's from now on.
    ///   - answer: gets answers in order, on the link's thread.
    init(_ link: RedisLink<NodeGreeting>, former: SharedMembers?, answer: @escaping @Sendable ([MemberAnswer]) -> Void) {
        self.link = link
        self.answer = answer
        former?.state.withLock { state in
            // Under both locks: a wish at the former one is either among these, or comes after them.
            self.state.withLock { $0.wishes = state.wishes.inherited }
            state.wishes = Wishes()
            state.successor = self
        }
    }

    /// The node has its first connection of the user in the place, or another info of theirs.
    package func join(_ place: MemberPlace, user: String, info: [UInt8]?, membersMax: Int, ticket: UInt64) {
        wish(.member(place, user: ExactText(user)), .member(info: info, membersMax: membersMax, ticket: ticket), isAbsence: false)
    }

    /// Asks for the list of the place's members.
    package func list(_ place: MemberPlace, ticket: UInt64) { wish(.list(place), .list(ticket: ticket), isAbsence: true) }

    /// Asks which of the users are members of the place.
    package func online(_ users: [String], in place: MemberPlace, ticket: UInt64) {
        wish(.online(place, ticket: ticket), .online(users), isAbsence: true)
    }

    /// The node's last connection of the user in the place is gone.
    package func leave(_ place: MemberPlace, user: String, lingerMilliseconds: Int, lingersAlways: Bool) {
        let value = Value.noMember(lingerMilliseconds: lingerMilliseconds, lingersAlways: lingersAlways)
        wish(.member(place, user: ExactText(user)), value, isAbsence: true)
    }

    /// The node has another number of subscribers.
    package func setSubscribers(_ place: MemberPlace, _ count: Int, tells: SubscriberNews) {
        wish(.subscribers(place), .subscribers(count, tells), isAbsence: count == 0)
    }

    /// The node reads from now on. Wishes wait until then: nobody would hear of a change between an answer and the first place read.
    /// - Parameter epoch: of the memory that it reads.
    func begin(in epoch: String?) {
        state.withLock { state in
            state.reads = true
            state.epoch = state.epoch ?? epoch
        }
        flush()
    }

    /// Sends what was wished. Call it at the end of a turn, and every 250 ms.
    package func flush() {
        let batch = state.withLock { state -> [(key: Key, value: Value)] in
            if let lateAt = state.lateAt, lateAt <= .now {
                state.lateAt = nil
                state.wishes.releaseLate()
            }
            let over = state.resting.count > Self.restingMax ? state.resting.count / 2 : state.resting.prefix { $0.until <= .now }.count
            for leaver in state.resting.prefix(over) { state.wishes.forget(leaver.key) }
            state.resting.removeFirst(over)
            guard state.reads, !state.isTravelling else { return [] }
            let batch = state.wishes.take(most: Self.batchMax)
            state.isTravelling = !batch.isEmpty
            return batch
        }
        guard !batch.isEmpty else { return }
        link.send { [self] greeting in
            commands(for: batch, greeting)
        } _: { [weak self] result in
            self?.answered(batch, result)
        }
    }

    private func commands(for batch: [(key: Key, value: Value)], _ greeting: NodeGreeting) -> [RedisCommand] {
        state.withLock { state in
            // The link may be greeted by the new memory before the stream tells of it.
            Self.enter(greeting.keys.epoch, &state)
            state.travelsWithLoss = state.tellsOfLoss
            let life = "\(MemberScripts.earlySeconds * 1_000)"
            let loss = RedisCommand("SET", texts: [greeting.keys.base + "recovering", "1", "PX", life, "NX"])
            return (state.tellsOfLoss ? [loss] : [])
                + batch.map { Self.call($0.key, $0.value, isRepeated: state.wishes.isRepeated($0.key), greeting) }
        }
    }

    /// The others have heard that the user is gone.
    func removed(_ user: String, from place: MemberPlace) {
        state.withLock { $0.wishes.forget(.member(place, user: ExactText(user))) }
    }

    /// Redis' memory was lost: everything is wished again.
    /// - Parameter epoch: of the new memory.
    package func restart(in epoch: String) {
        state.withLock { state in
            // The link was first: the homes have just forgotten its answers.
            if epoch == state.epoch { state.wishes.again() }
            Self.enter(epoch, &state)
        }
        flush()
    }

    /// Stream and link meet a new memory one after the other. Whichever is first restarts the wishes.
    private static func enter(_ epoch: String, _ state: inout State) {
        guard epoch != state.epoch, epoch != state.formerEpoch else { return }
        if state.epoch != nil {
            state.wishes.restart()
            state.lateAt = .now + rebuildMax
            state.tellsOfLoss = true
        }
        (state.epoch, state.formerEpoch) = (epoch, state.epoch)
    }

    private func wish(_ key: Key, _ value: Value, isAbsence: Bool) {
        let successor = state.withLock { state in
            if state.successor == nil { state.wishes.wish(key, value, isAbsence: isAbsence) }
            return state.successor
        }
        successor?.wish(key, value, isAbsence: isAbsence)
    }

    private static func call(_ key: Key, _ value: Value, isRepeated: Bool, _ greeting: NodeGreeting) -> RedisCommand {
        let keys = [greeting.keys.epochKey, greeting.keys.nodes, greeting.keys.base, greeting.keys.events]
        func script(_ script: RedisScript, _ words: [[UInt8]]) -> RedisCommand { script.call(keys: keys, greeting.credentials + words) }
        func word(_ text: some CustomStringConvertible) -> [UInt8] { Array(text.description.utf8) }
        let repeated = word(isRepeated ? 1 : 0)
        return switch (key, value) {
        case (.member(let place, let user), .member(let info, let membersMax, _)):
            script(MemberScripts.join, [word(place), word(user.text), info ?? [], word(membersMax), repeated])
        case (.list(let place), .list(_)): script(MemberScripts.list, [word(place)])
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

    private func answered(_ batch: [(key: Key, value: Value)], _ result: Result<[RedisReply], RedisFailure>) {
        var answers: [MemberAnswer] = []
        let succeeds = state.withLock { state -> Bool in
            state.isTravelling = false
            guard case .success(let replies) = result else {
                for entry in batch { state.wishes.failed(entry.key) }
                return false
            }
            if state.travelsWithLoss { state.tellsOfLoss = false }
            var succeeds = true
            for (entry, reply) in zip(batch, replies.dropFirst(state.travelsWithLoss ? 1 : 0)) {
                if case .error = reply {
                    state.wishes.failed(entry.key)
                    succeeds = false
                    continue
                }
                // A memory that is lost now takes the end of this member with it, unless the others have heard of it already.
                let rests = if case .noMember = entry.value { reply.integer == 1 } else { false }
                if rests { state.resting.append((entry.key, .now + Self.restingFor)) }
                if state.wishes.succeeded(entry.key, rests: rests), let answer = Self.answer(entry.key, entry.value, reply) {
                    answers.append(answer)
                }
            }
            return succeeds
        }
        if !answers.isEmpty { answer(answers) }
        if succeeds { flush() }
    }

    /// Nil for answers that nobody waits for.
    private static func answer(_ key: Key, _ value: Value, _ reply: RedisReply) -> MemberAnswer? {
        switch (key, value) {
        case (.member(let place, let user), .member(_, _, let ticket)):
            if reply.text == "full" { return .full(place, user: user.text, ticket: ticket) }
            return reply.text.flatMap(StreamID.init).map { .admitted(place, user: user.text, ticket: ticket, at: $0) }
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
