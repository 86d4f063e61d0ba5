internal import HubChannels
internal import HubCore
internal import HubJSON
internal import PusherProtocol

/// `POST /apps/{app}/events` and `/batch_events`: from the body to the fan-out (protocol reference, 5.2 and 5.3).
///
/// A publish to channels without a definition is framed once and handed to every loop here and now, and its answer comes
/// before the fan-out. One that has a definition goes to the event desk.
struct EventsResource {
    let engine: ChannelEngine
    let desk: any EventDesk
    let survey: ChannelSurvey

    func publish(
        _ request: HTTPRequest, app: App, isBatch: Bool, parser: JSONParser, later: @escaping @Sendable (HTTPResponse) -> Void
    ) -> HTTPResponse? {
        var limits = PublishLimits()
        limits.eventDataBytesMax = app.eventDataBytesMax
        let requests: [PublishRequest]
        do {
            requests =
                isBatch
                ? try PublishRequest.parse(batch: request.body, limits: limits, with: parser)
                : [try PublishRequest.parse(event: request.body, limits: limits, with: parser)]
        } catch {
            return .error(error.status, error.message)
        }
        if requests.contains(where: { $0.channels.contains(where: desk.isDefined) }) {
            return submit(requests, app: app, isBatch: isBatch, later: later)
        }
        for request in requests { engine.publish(Self.publication(request, app: app, engine: engine)) }
        let plain = requests.map { _ in PublishOutcome(events: []) }
        return answer(requests, plain, app: app, isBatch: isBatch, later: later)
    }

    static func publication(_ request: PublishRequest, app: App, engine: ChannelEngine) -> Publication {
        Publication(
            app: app.index,
            frames: request.channels.map { channel in
                (channel, Frame.text(ServerEvent.event(name: request.name, channel: channel, data: request.data)))
            },
            excluded: request.excludedSocketID.flatMap(engine.connection(socketID:)),
            cacheOrder: request.channels.contains { $0.kind.isCache } ? engine.directory.nextOrder() : nil)
    }

    private func submit(
        _ requests: [PublishRequest], app: App, isBatch: Bool, later: @escaping @Sendable (HTTPResponse) -> Void
    ) -> HTTPResponse? {
        let survey = survey
        let taken = desk.submit(
            PublishCommand(app: app, requests: requests) { result in
                switch result {
                case .success(let outcomes):
                    Self.answer(requests, outcomes, app: app, isBatch: isBatch, survey: survey, later: later)
                case .failure(let refusal): later(.error(refusal.status, refusal.sentence))
                }
            })
        return taken ? nil : .error(503, "too many publishes are waiting to be stored: try again in a moment")
    }

    /// The common answer needs nobody; counts that were asked for have to be collected first.
    private func answer(
        _ requests: [PublishRequest], _ outcomes: [PublishOutcome], app: App, isBatch: Bool,
        later: @escaping @Sendable (HTTPResponse) -> Void
    ) -> HTTPResponse? {
        if requests.allSatisfy(\.attributes.isEmpty) { return Self.body(requests, outcomes, counts: [:], isBatch: isBatch) }
        Self.answer(requests, outcomes, app: app, isBatch: isBatch, survey: survey, later: later)
        return nil
    }

    private static func answer(
        _ requests: [PublishRequest], _ outcomes: [PublishOutcome], app: App, isBatch: Bool, survey: ChannelSurvey,
        later: @escaping @Sendable (HTTPResponse) -> Void
    ) {
        let asked = Set(requests.flatMap { $0.attributes.isEmpty ? [] : $0.channels })
        if asked.isEmpty { return later(body(requests, outcomes, counts: [:], isBatch: isBatch)) }
        survey.ask { home in
            asked.compactMap { channel in home.summary(app: app.index, channel: channel).map { (channel, $0) } }
        } then: { answers in
            let counts = Dictionary(answers.joined(), uniquingKeysWith: { first, _ in first })
            later(body(requests, outcomes, counts: counts, isBatch: isBatch))
        }
    }

    private static func body(
        _ requests: [PublishRequest], _ outcomes: [PublishOutcome], counts: [ChannelName: HomeRegistry.Summary], isBatch: Bool
    ) -> HTTPResponse {
        if isBatch {
            let isPlain = requests.allSatisfy(\.attributes.isEmpty) && outcomes.allSatisfy(\.events.isEmpty)
            if isPlain { return HTTPResponse(status: 200, body: Array("{}".utf8)) }
            let items = zip(requests, outcomes).map { request, outcome in
                var members = request.channels.first.map { attributes(request, of: $0, counts) } ?? [:]
                members.merge(eventMembers(outcome)) { current, _ in current }
                return JSONValue.object(members)
            }
            return .json(["batch": .array(items)])
        }
        var members = outcomes.first.map(eventMembers) ?? [:]
        if let request = requests.first, !request.attributes.isEmpty {
            let channels = request.channels.map { channel in
                (channel.text, JSONValue.object(attributes(request, of: channel, counts)))
            }
            members["channels"] = .object(Dictionary(channels, uniquingKeysWith: { first, _ in first }))
        }
        return .json(.object(members))
    }

    /// What `info` asked; the cache of a channel holds what was just published.
    private static func attributes(
        _ request: PublishRequest, of channel: ChannelName, _ counts: [ChannelName: HomeRegistry.Summary]
    ) -> [String: JSONValue] {
        let cached = (data: request.data.content, secondsLeft: ChannelEngine.cacheSeconds)
        return ChannelsResource.attributes(request.attributes, of: channel, counts[channel], cached: cached)
    }

    /// `event_id`, and `event_ids` by channel where one publish became several events.
    private static func eventMembers(_ outcome: PublishOutcome) -> [String: JSONValue] {
        guard let first = outcome.events.first else { return [:] }
        var members: [String: JSONValue] = ["event_id": .string(first.id)]
        if outcome.events.count > 1 {
            let ids = outcome.events.map { ($0.channel.text, JSONValue.string($0.id)) }
            members["event_ids"] = .object(Dictionary(ids, uniquingKeysWith: { first, _ in first }))
        }
        return members
    }
}
