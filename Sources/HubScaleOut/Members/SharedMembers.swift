package import HubCore
internal import Synchronization

/// The node's members and subscribers on their way to Redis. Any thread.
package final class SharedMembers: Sendable {
    /// Up to this many members a leaver is told at once.
    package static let promptMembersMax = 100
    /// Up to this many subscribers, every new number is told at once; beyond, once in so many milliseconds.
    package static let promptCountsMax = 100
    static let countMilliseconds = 5_000

    private struct State {
        var wishes = MemberWishes()
        /// The run after this one, which has the wishes.
        var successor: SharedMembers?
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
            state.wishes = MemberWishes()
            state.successor = self
        }
    }

    /// The node has its first connection of the user in the place, or another info of theirs.
    package func join(_ place: MemberPlace, user: String, info: [UInt8]?, membersMax: Int, ticket: UInt64) {
        wish { $0.join(place, user: user, info: info, membersMax: membersMax, ticket: ticket) }
    }

    /// Asks for the list of the place's members.
    package func list(_ place: MemberPlace, ticket: UInt64) { wish { $0.list(place, ticket: ticket) } }

    /// Asks which of the users are members of the place.
    package func online(_ users: [String], in place: MemberPlace, ticket: UInt64) {
        wish { $0.online(users, in: place, ticket: ticket) }
    }

    /// The node's last connection of the user in the place is gone.
    package func leave(_ place: MemberPlace, user: String, lingerMilliseconds: Int, lingersAlways: Bool) {
        wish { $0.leave(place, user: user, lingerMilliseconds: lingerMilliseconds, lingersAlways: lingersAlways) }
    }

    /// The node knew of the member in a memory that was lost, and the next one does not have the member.
    package func missed(_ place: MemberPlace, user: String) { wish { $0.missed(place, user: user) } }

    /// The node knew of the member in a memory that was lost, and the next one takes them for somebody new.
    package func known(_ place: MemberPlace, user: String) { wish { $0.known(place, user: user) } }

    /// The node has another number of subscribers.
    package func setSubscribers(_ place: MemberPlace, _ count: Int, tells: SubscriberNews) {
        wish { $0.setSubscribers(place, count, tells: tells) }
    }

    private func wish(_ change: (inout MemberWishes) -> Void) {
        let successor = state.withLock { state in
            if state.successor == nil { change(&state.wishes) }
            return state.successor
        }
        successor?.wish(change)
    }

    /// Whether a node that stops takes nothing with it that the others have to hear of a lost memory.
    var areEndsTold: Bool { state.withLock { $0.wishes.areEndsTold(now: .now) } }

    /// The node reads from now on.
    /// - Parameter epoch: of the memory that it reads.
    func begin(in epoch: String?) {
        state.withLock { $0.wishes.begin(in: epoch, now: .now) }
        flush()
    }

    /// The node has heard that the user is gone.
    func removed(_ user: String, from place: MemberPlace) { state.withLock { $0.wishes.removed(user, from: place, now: .now) } }

    /// Redis' memory was lost: everything is wished again.
    /// - Parameter epoch: of the new memory.
    package func restart(in epoch: String) {
        state.withLock { $0.wishes.restart(in: epoch, now: .now) }
        flush()
    }

    /// Sends what was wished. Call it at the end of a turn, and every 250 ms.
    package func flush() {
        guard let batch = state.withLock({ $0.wishes.take(now: .now) }) else { return }
        let travels = Guarded(batch)
        link.send { [self] greeting in
            state.withLock { state in travels.withLock { state.wishes.commands(for: &$0, greeting, now: .now) } }
        } _: { [weak self] result in
            self?.answered(travels.withLock { $0 }, result)
        }
    }

    private func answered(_ batch: MemberWishes.Batch, _ result: Result<[RedisReply], RedisFailure>) {
        let (answers, succeeds) = state.withLock { $0.wishes.answered(batch, result, now: .now) }
        if !answers.isEmpty { answer(answers) }
        if succeeds { flush() }
    }
}
