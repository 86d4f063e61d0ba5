internal import HubCore

/// Questions about all nodes' channels and members, on a connection of their own: a long answer keeps nobody's events waiting.
struct MemberQueries: Sendable {
    private let link: RedisLink<NodeGreeting>

    /// Entries that one call looks at.
    private static let pieceMax = 1_000

    init(_ link: RedisLink<NodeGreeting>) { self.link = link }

    /// The occupied channels of the app whose names begin with `prefix`.
    /// - Parameter countsUsers: whether users are asked for; else 0.
    func channels(app: String, prefix: String, countsUsers: Bool) async throws(RedisFailure) -> [ChannelCounts] {
        var found: [String: ChannelCounts] = [:]
        var cursor = "0"
        let pattern = Self.escaped(prefix) + "*"
        repeat {
            let from = cursor
            let reply = try await link.run { greeting in
                [
                    RedisCommand(
                        "HSCAN", texts: [greeting.keys.base + "channels:\(app)", from, "MATCH", pattern, "COUNT", "\(Self.pieceMax)"])
                ]
            }[0]
            guard let parts = reply.array, parts.count == 2, let next = parts[0].text, let words = parts[1].array else { throw Self.shape }
            var piece: [ChannelCounts] = []
            for place in stride(from: 0, to: words.count - 1, by: 2) {
                guard let name = words[place].text, let count = words[place + 1].text.flatMap({ Int($0) }) else { throw Self.shape }
                piece.append(ChannelCounts(channel: name, subscribers: count, users: 0))
            }
            if countsUsers, !piece.isEmpty {
                let names = piece.map(\.channel)
                let users = try await link.run { greeting in
                    names.map { RedisCommand("HLEN", texts: [greeting.keys.base + "users:\(MemberPlace(app: app, channel: $0))"]) }
                }
                for place in piece.indices { piece[place].users = Int(clamping: users[place].integer ?? 0) }
            }
            // A scan may meet an entry twice.
            for counts in piece { found[counts.channel] = counts }
            cursor = next
        } while cursor != "0"
        return Array(found.values)
    }

    /// Counts of these channels; those that nobody is in are left out.
    func channels(_ places: [MemberPlace]) async throws(RedisFailure) -> [ChannelCounts] {
        let replies = try await link.run { greeting in
            places.flatMap { place in
                [
                    RedisCommand("HGET", texts: [greeting.keys.base + "channels:\(place.app)", place.channel]),
                    RedisCommand("HLEN", texts: [greeting.keys.base + "users:\(place)"]),
                ]
            }
        }
        return places.indices.compactMap { index in
            guard let count = replies[2 * index].text.flatMap({ Int($0) }) else { return nil }
            let users = Int(clamping: replies[2 * index + 1].integer ?? 0)
            return ChannelCounts(channel: places[index].channel, subscribers: count, users: users)
        }
    }

    /// The members of a channel.
    func users(_ place: MemberPlace) async throws(RedisFailure) -> [String] {
        let reply = try await link.run { greeting in [RedisCommand("HKEYS", texts: [greeting.keys.base + "users:\(place)"])] }[0]
        guard let words = reply.array else { throw Self.shape }
        return words.compactMap(\.text)
    }

    /// Place of the stream's last message.
    func lastMessage() async throws(RedisFailure) -> StreamID {
        let reply = try await link.run { [RedisCommand("XREVRANGE", texts: [$0.keys.events, "+", "-", "COUNT", "1"])] }[0].value()
        return reply.array?.first?.array?.first?.text.flatMap(StreamID.init) ?? .zero
    }

    /// The members of a channel, each with the nodes that have connections of theirs.
    func members(_ place: MemberPlace) async throws(RedisFailure) -> [String: [UInt64]] {
        let reply = try await link.run { greeting in [RedisCommand("HKEYS", texts: [greeting.keys.base + "on:\(place)"])] }[0]
        guard let words = reply.array else { throw Self.shape }
        var members: [String: [UInt64]] = [:]
        for word in words {
            // A user id may hold the separator; a node's number does not.
            guard let text = word.text, let end = text.lastIndex(of: "\0"), let node = UInt64(text[text.index(after: end)...]) else {
                throw Self.shape
            }
            members[String(text[..<end]), default: []].append(node)
        }
        return members
    }

    /// Connections of the app on all nodes.
    func connections(app: String) async throws(RedisFailure) -> Int {
        let reply = try await link.run { greeting in [RedisCommand("HVALS", texts: [greeting.keys.base + "connections:\(app)"])] }[0]
        guard let words = reply.array else { throw Self.shape }
        return words.reduce(0) { $0 + ($1.text.flatMap { Int($0) } ?? 0) }
    }

    /// Takes the meaning of a pattern from its characters.
    private static func escaped(_ text: String) -> String {
        text.reduce(into: "") { $0 += "*?[]^\\".contains($1) ? "\\\($1)" : "\($1)" }
    }

    private static let shape = RedisFailure.notRedis("a question about members is answered in another shape")
}
