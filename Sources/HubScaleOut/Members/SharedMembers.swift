internal import HubCore
internal import Synchronization

/// Answer of Redis to a node's new member.
package enum MemberAnswer: Sendable, Equatable {
    /// The user is a member, as all nodes know that have read up to the id. The list is as of that id; nil where nobody wanted it.
    case admitted(MemberPlace, user: String, at: StreamID, list: [(user: String, info: [UInt8]?)]?)
    /// The channel has its maximum of members.
    case full(MemberPlace, user: String)

    package static func == (one: MemberAnswer, other: MemberAnswer) -> Bool {
        switch (one, other) {
        case (.admitted(let place, let user, let id, let list), .admitted(let place2, let user2, let id2, let list2)):
            place == place2 && user == user2 && id == id2 && list?.map(\.user) == list2?.map(\.user)
                && list?.map(\.info) == list2?.map(\.info)
        case (.full(let place, let user), .full(let place2, let user2)): place == place2 && user == user2
        default: false
        }
    }
}

/// The members and subscribers that this node has, as Redis shall know them. Any thread.
///
/// Wishes of one turn travel together. Wishes without an answer are wished again, and all of them once Redis' memory was lost.
package final class SharedMembers: Sendable {
    /// Up to this many members a leaver is told at once.
    package static let promptMembersMax = 100
    /// Wishes that travel together.
    static let batchMax = 512

    private enum Key: Hashable, Sendable {
        case member(MemberPlace, user: ExactText)
        case subscribers(MemberPlace)
    }

    private enum Value: Sendable {
        case member(info: [UInt8]?, membersMax: Int, wantsList: Bool)
        case noMember(lingerMilliseconds: Int)
        case subscribers(Int)
    }

    private struct State {
        var wishes = Wishes<Key, Value>()
        var isTravelling = false
    }

    private let state = Mutex(State())
    private let link: RedisLink<NodeGreeting>
    private let answer: @Sendable ([MemberAnswer]) -> Void

    /// - Parameter answer: gets answers in order, on the link's thread.
    init(_ link: RedisLink<NodeGreeting>, answer: @escaping @Sendable ([MemberAnswer]) -> Void) {
        self.link = link
        self.answer = answer
    }

    /// The node has its first connection of the user in the place, or another info of theirs.
    package func join(_ place: MemberPlace, user: String, info: [UInt8]?, membersMax: Int, wantsList: Bool) {
        wish(
            .member(place, user: ExactText(user)), .member(info: info, membersMax: membersMax, wantsList: wantsList), isAbsence: false)
    }

    /// The node's last connection of the user in the place is gone.
    package func leave(_ place: MemberPlace, user: String, lingerMilliseconds: Int) {
        wish(.member(place, user: ExactText(user)), .noMember(lingerMilliseconds: lingerMilliseconds), isAbsence: true)
    }

    /// The node has another number of subscribers.
    package func setSubscribers(_ place: MemberPlace, _ count: Int) {
        wish(.subscribers(place), .subscribers(count), isAbsence: count == 0)
    }

    /// Sends what was wished. Call it at the end of a turn, and every 250 ms.
    package func flush() {
        let batch = state.withLock { state -> [(key: Key, value: Value)] in
            guard !state.isTravelling else { return [] }
            let batch = state.wishes.take(most: Self.batchMax)
            state.isTravelling = !batch.isEmpty
            return batch
        }
        guard !batch.isEmpty else { return }
        link.send { greeting in
            batch.map { Self.call($0.key, $0.value, greeting) }
        } _: { [weak self] result in
            self?.answered(batch, result)
        }
    }

    /// Redis' memory was lost: everything is wished again.
    package func restart() {
        state.withLock { $0.wishes.restart() }
        flush()
    }

    private func wish(_ key: Key, _ value: Value, isAbsence: Bool) {
        state.withLock { $0.wishes.wish(key, value, isAbsence: isAbsence) }
    }

    private static func call(_ key: Key, _ value: Value, _ greeting: NodeGreeting) -> RedisCommand {
        let keys = [greeting.keys.epochKey, greeting.keys.nodes, greeting.keys.base, greeting.keys.events]
        func script(_ script: RedisScript, _ words: [[UInt8]]) -> RedisCommand { script.call(keys: keys, greeting.credentials + words) }
        func word(_ text: some CustomStringConvertible) -> [UInt8] { Array(text.description.utf8) }
        return switch (key, value) {
        case (.member(let place, let user), .member(let info, let membersMax, let wantsList)):
            script(MemberScripts.join, [word(place), word(user.text), info ?? [], word(membersMax), word(wantsList ? 1 : 0)])
        case (.member(let place, let user), .noMember(let linger)):
            script(MemberScripts.leave, [word(place), word(user.text), word(linger)])
        case (.subscribers(let place), .subscribers(let count)):
            script(MemberScripts.subscribers, [word(place), word(place.app), word(place.channel), word(count)])
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
            var succeeds = true
            for (entry, reply) in zip(batch, replies) {
                if case .error = reply {
                    state.wishes.failed(entry.key)
                    succeeds = false
                } else if state.wishes.succeeded(entry.key), case .member(let place, let user) = entry.key,
                    let answer = Self.answer(place, user.text, reply)
                {
                    answers.append(answer)
                }
            }
            return succeeds
        }
        if !answers.isEmpty { answer(answers) }
        if succeeds { flush() }
    }

    /// Nil for the answer to a leave.
    private static func answer(_ place: MemberPlace, _ user: String, _ reply: RedisReply) -> MemberAnswer? {
        if reply.text == "full" { return .full(place, user: user) }
        guard let parts = reply.array, parts.count == 2, let id = parts[0].text.flatMap(StreamID.init), let words = parts[1].array else {
            return nil
        }
        var list: [(user: String, info: [UInt8]?)] = []
        for place in stride(from: 0, to: words.count - 1, by: 2) {
            guard let user = words[place].text, let info = words[place + 1].bytes else { continue }
            list.append((user, info.isEmpty ? nil : info))
        }
        return .admitted(place, user: user, at: id, list: list.isEmpty ? nil : list)
    }
}
