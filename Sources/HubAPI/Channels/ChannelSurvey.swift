package import HubChannels
package import HubCore
internal import PusherProtocol
internal import Synchronization

/// Asks for channels' numbers and members: the channels' home loops, or where there are several nodes the way between them.
///
/// `then` is called once, on any thread. Nil: the way between the nodes gives no answer.
package struct ChannelSurvey: Sendable {
    /// Number of the loops that are asked.
    package let loopCount: Int
    /// Posts to any loop's engine, from any thread.
    private let post: @Sendable (_ loop: Int, EngineMessage) -> Void
    private let backplane: (any Backplane)?

    /// - Parameters:
    ///   - backplane: the way between the nodes; nil: there is one node.
    ///   - post: posts to any loop's engine, from any thread.
    package init(
        loopCount: Int, backplane: (any Backplane)? = nil, post: @escaping @Sendable (_ loop: Int, EngineMessage) -> Void
    ) {
        self.loopCount = loopCount
        self.backplane = backplane
        self.post = post
    }

    /// The occupied channels whose names begin with `prefix`, in no order.
    func summaries(
        _ app: App, prefix: String, countsUsers: Bool,
        then: @escaping @Sendable ([(channel: ChannelName, summary: HomeRegistry.Summary)]?) -> Void
    ) {
        guard let backplane else {
            return ask {
                $0.summaries(app: app.index, prefix: prefix)
            } then: {
                then(Array($0.joined()))
            }
        }
        Task { then(await backplane.channels(app: app.id, prefix: prefix, countsUsers: countsUsers).map(Self.summaries)) }
    }

    /// At most `limit` of the occupied channels whose names begin with `prefix`, sorted.
    func names(_ app: App, prefix: String, limit: Int, then: @escaping @Sendable ([String]?) -> Void) {
        guard let backplane else {
            return ask {
                $0.names(app: app.index, prefix: prefix, limit: limit)
            } then: {
                then($0.joined().map(\.text).first(limit))
            }
        }
        Task { then(await backplane.channels(app: app.id, prefix: prefix, countsUsers: false)?.map(\.channel).first(limit)) }
    }

    /// Those of the channels that are occupied.
    func summaries(
        _ app: App, of channels: Set<ChannelName>, then: @escaping @Sendable ([ChannelName: HomeRegistry.Summary]?) -> Void
    ) {
        guard let backplane else {
            return ask { home in
                channels.compactMap { channel in home.summary(app: app.index, channel: channel).map { (channel, $0) } }
            } then: { answers in
                then(Dictionary(answers.joined(), uniquingKeysWith: { first, _ in first }))
            }
        }
        let places = channels.map { MemberPlace(app: app.id, channel: $0.text) }
        Task {
            then(await backplane.channels(places).map { Dictionary(Self.summaries($0), uniquingKeysWith: { first, _ in first }) })
        }
    }

    /// Ids of the channel's members, in no order.
    func users(_ app: App, of channel: ChannelName, then: @escaping @Sendable ([String]?) -> Void) {
        guard let backplane else {
            return ask {
                $0.users(app: app.index, channel: channel)
            } then: {
                then(Array($0.joined()))
            }
        }
        Task { then(await backplane.users(MemberPlace(app: app.id, channel: channel.text))) }
    }

    /// The channel's members and where their connections are, in no order.
    func members(_ app: App, of channel: ChannelName, then: @escaping @Sendable ([ChannelMember]?) -> Void) {
        guard let backplane else {
            return ask {
                $0.members(app: app.index, channel: channel)
            } then: { answers in
                then(
                    answers.joined().map { user, loops in
                        ChannelMember(user: user, places: loops.map { ChannelMember.Place(node: nil, loop: $0) })
                    })
            }
        }
        Task {
            let members = await backplane.members(MemberPlace(app: app.id, channel: channel.text))
            then(
                members?.map { user, nodes in
                    ChannelMember(user: user, places: nodes.sorted().map { ChannelMember.Place(node: $0.hexDigits, loop: nil) })
                })
        }
    }

    private static func summaries(_ counts: [ChannelCounts]) -> [(channel: ChannelName, summary: HomeRegistry.Summary)] {
        counts.compactMap { counts in
            ChannelName(counts.channel).map {
                ($0, HomeRegistry.Summary(userCount: counts.users, subscriptionCount: counts.subscribers))
            }
        }
    }

    /// Asks every loop the same question. `then` runs on the loop that answers last, with the answers in no particular order.
    private func ask<Answer: Sendable>(
        _ question: @escaping @Sendable (HomeRegistry) -> Answer, then: @escaping @Sendable ([Answer]) -> Void
    ) {
        let answers = Collected<Answer>()
        for loop in 0..<loopCount {
            post(
                loop,
                .query { [loopCount] in
                    let answer = question($0.home)
                    let all = answers.values.withLock { values in
                        values.append(answer)
                        assert(values.count <= loopCount, "\(values.count) loops answered, and \(loopCount) were asked")
                        return values.count == loopCount ? values : nil
                    }
                    if let all { then(all) }
                })
        }
    }

    private final class Collected<Answer: Sendable>: Sendable {
        let values = Mutex<[Answer]>([])
    }
}

extension [String] {
    fileprivate func first(_ count: Int) -> [String] { Array(sorted().prefix(count)) }
}
