internal import HubChannels
internal import HubCore
internal import PusherProtocol

/// `GET /apps/{app}/channels`, `/channels/{channel}` and `/channels/{channel}/users` (docs/protocol.md, 5.4 to 5.6), and the
/// deprecated `/channels/{channel}/stats` (docs/protocol.md, 5.8).
struct ChannelsResource {
    let engine: ChannelEngine
    let survey: ChannelSurvey

    func list(_ request: HTTPRequest, app: App, later: LateAnswer) -> HTTPResponse? {
        let prefix = request.parameter("filter_by_prefix") ?? ""
        let attributes: ChannelAttributes
        do { attributes = try ChannelAttributes(parsing: request.parameter("info") ?? "") } catch { return .error(400, error.message) }
        if attributes.contains(.userCount), !prefix.hasPrefix("presence-") {
            return .error(400, "info=user_count needs a filter_by_prefix that begins with presence-")
        }
        if attributes.contains(.cache) { return .error(400, "info=cache is an attribute of one channel: ask for that channel") }
        survey.summaries(app, prefix: prefix, countsUsers: attributes.contains(.userCount)) { summaries in
            guard let summaries else { return later(.interrupted) }
            let channels = summaries.map { channel, summary in
                (channel.text, JSONValue.object(Self.attributes(attributes, of: channel, summary)))
            }
            later(.json(["channels": .object(Dictionary(channels, uniquingKeysWith: { first, _ in first }))]))
        }
        return nil
    }

    func show(_ request: HTTPRequest, app: App, channel: ChannelName, later: LateAnswer) -> HTTPResponse? {
        let attributes: ChannelAttributes
        do { attributes = try ChannelAttributes(parsing: request.parameter("info") ?? "") } catch { return .error(400, error.message) }
        if attributes.contains(.userCount), !channel.kind.isPresence {
            return .error(400, "Cannot retrieve the user count unless the channel is a presence channel")
        }
        if attributes.contains(.cache), !channel.kind.isCache {
            return .error(400, "Cannot retrieve the cache unless the channel is a cache channel")
        }
        let answer: @Sendable (CachedEvent?) -> Void = { [survey] cached in
            survey.summaries(app, of: [channel]) { summaries in
                guard let summaries else { return later(.interrupted) }
                let summary = summaries[channel]
                var members = Self.attributes(attributes, of: channel, summary, cached: cached)
                members["occupied"] = .bool(summary != nil)
                later(.json(.object(members)))
            }
        }
        guard attributes.contains(.cache) else {
            answer(nil)
            return nil
        }
        guard let nodes = engine.nodes else {
            answer(engine.cachedEvent(app: app.index, channel: channel))
            return nil
        }
        // Another node may have answered a publish that has not come here yet.
        nodes.ask(loop: engine.loop, after: app) { engine in
            guard let engine else { return later(.interrupted) }
            answer(engine.cachedEvent(app: app.index, channel: channel))
        }
        return nil
    }

    /// Data and remaining seconds of a cache channel's last event.
    typealias CachedEvent = (data: String, secondsLeft: Int)

    func users(_ request: HTTPRequest, app: App, channel: ChannelName, later: LateAnswer) -> HTTPResponse? {
        guard channel.kind.isPresence else { return .error(400, "Users can only be retrieved for presence channels") }
        let extraneous = request.query.map(\.name).filter { !$0.hasPrefix("auth_") && $0 != "body_md5" }
        if !extraneous.isEmpty {
            return .error(400, "The following query string parameters are extraneous: \(extraneous.joined(separator: ", "))")
        }
        survey.users(app, of: channel) { ids in
            guard let ids else { return later(.interrupted) }
            later(.json(["users": .array(ids.sorted().map { ["id": .string($0)] })]))
        }
        return nil
    }

    /// The predecessor of `show`, for libraries of 2012. It has no parameters. Its answer has the count of users on presence channels,
    /// and the count of connections under its old name.
    func stats(_ request: HTTPRequest, app: App, channel: ChannelName, later: LateAnswer) -> HTTPResponse? {
        survey.summaries(app, of: [channel]) { summaries in
            guard let summaries else { return later(.interrupted) }
            let summary = summaries[channel]
            var members = Self.attributes(.userCount, of: channel, summary)
            members["occupied"] = .bool(summary != nil)
            members["connection_count"] = .int(Int64(summary?.subscriptionCount ?? 0))
            later(.json(.object(members)))
        }
        return nil
    }

    /// The requested attributes that apply to the channel; counts of an unoccupied channel are 0.
    /// - Parameter cached: event of a cache channel; nil: none.
    static func attributes(
        _ asked: ChannelAttributes, of channel: ChannelName, _ summary: HomeRegistry.Summary?,
        cached: CachedEvent? = nil
    ) -> [String: JSONValue] {
        var members: [String: JSONValue] = [:]
        if asked.contains(.userCount), channel.kind.isPresence { members["user_count"] = .int(Int64(summary?.userCount ?? 0)) }
        if asked.contains(.subscriptionCount) { members["subscription_count"] = .int(Int64(summary?.subscriptionCount ?? 0)) }
        if asked.contains(.cache), channel.kind.isCache {
            members["cache"] = cached.map { ["data": .string($0.data), "ttl": .int(Int64($0.secondsLeft))] } ?? .null
        }
        return members
    }
}
