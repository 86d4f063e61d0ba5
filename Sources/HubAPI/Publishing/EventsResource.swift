internal import HubChannels
internal import HubCore
internal import HubDelivery
internal import HubJSON
internal import PusherProtocol

/// `POST /apps/{app}/events` and `/batch_events`: from the body to the fan-out (docs/protocol.md, 5.2 and 5.3); and the
/// deprecated `POST /apps/{app}/channels/{channel}/events` (docs/protocol.md, 5.8).
///
/// A publish to channels without a definition is framed once and handed to every loop at once. Its answer comes before the fan-out.
/// Channels with a definition go to the delivery task. So does a publish with an idempotency key, because its answer is committed first.
struct EventsResource {
    let engine: ChannelEngine
    let delivery: any EventPort
    let survey: ChannelSurvey
    let answers: AnswerBook
    /// Facts for whoever looks; nil: nobody can.
    let live: LiveStream?
    let laterPublishes: LaterPublishes

    /// Form of the answer.
    private enum Form {
        case event, batch, deprecated
    }

    func publish(
        _ request: HTTPRequest, app: App, isBatch: Bool, parser: JSONParser, later: LateAnswer
    ) -> HTTPResponse? {
        do {
            if isBatch {
                let requests = try PublishRequest.parse(batch: request.body, limits: PublishLimits(app), with: parser)
                return publish(requests.map(\.detached), request, app: app, .batch, later: later)
            }
            let event = try PublishRequest.parse(event: PublishParameters.body(request), limits: PublishLimits(app), with: parser)
            return publish(event, request, app: app, .event, later: later)
        } catch {
            return .error(error.status, error.message)
        }
    }

    /// The deprecated route: one channel, named by the path, with the body as its data.
    func publish(
        _ request: HTTPRequest, app: App, to channel: ChannelName, later: LateAnswer
    ) -> HTTPResponse? {
        let event: PublishRequest
        do {
            event = try PublishRequest.parse(
                name: request.parameter("name"), socketID: request.parameter("socket_id"), data: request.body, channel: channel,
                limits: PublishLimits(app))
        } catch {
            return .error(error.status, error.message)
        }
        return publish(event, request, app: app, .deprecated, later: later)
    }

    /// Publishes one event: at once if it asks for nothing else, and has no policy. Every other one is given away, with bytes of its own.
    private func publish(_ event: PublishRequest, _ request: HTTPRequest, app: App, _ form: Form, later: LateAnswer) -> HTTPResponse? {
        guard event.isPlain, request.headers["idempotency-key"] == nil, engine.nodes == nil,
            !event.channels.contains(where: { delivery.isDefined($0) })
        else { return publish([event.detached], request, app: app, form, later: later) }
        note(event, app: app)
        engine.publish(Self.publication(event, app: app, engine: engine))
        return Self.plain(form)
    }

    private func publish(
        _ requests: [PublishRequest], _ request: HTTPRequest, app: App, _ form: Form, later: LateAnswer
    ) -> HTTPResponse? {
        var key: IdempotencyKey?
        if let text = request.headers["idempotency-key"] ?? requests.first?.idempotencyKey {
            key = IdempotencyKey(text, app: app.id)
            guard key != nil else { return .error(400, IdempotencyKey.rule) }
        }
        if let request = requests.first(where: \.isDryRun) {
            return DryRun(delivery: delivery).respond(to: request, app: app, later: later)
        }
        do {
            if let times = try laterPublishes.deliveryTimes(requests) {
                let digest = key.map { _ in IdempotencyKey.digest(of: request) }
                laterPublishes.keep(requests, at: times, key, digest: digest, app: app, isBatch: form == .batch, later: later)
                return nil
            }
        } catch {
            return error.response
        }
        if let key {
            publishOnce(requests, key, digest: IdempotencyKey.digest(of: request), app: app, form, later: later)
            return nil
        }
        if requests.contains(where: { $0.channels.contains { delivery.isDefined($0) } }) {
            return submit(requests, app: app, form, later: later)
        }
        for event in requests { note(event, app: app) }
        if let nodes = engine.nodes {
            nodes.publish(requests.map { Self.event($0, app: app) }) { [survey] isOnItsWay in
                guard isOnItsWay else { return later(.interrupted) }
                Self.answer(requests, app: app, survey: survey, form, later: later)
            }
            return nil
        }
        for event in requests { engine.publish(Self.publication(event, app: app, engine: engine)) }
        if requests.allSatisfy(\.attributes.isEmpty) { return Self.plain(form) }
        Self.answer(requests, app: app, survey: survey, form, later: later)
        return nil
    }

    /// Answers a publish without a policy, after the counts that it asks for.
    private static func answer(
        _ requests: [PublishRequest], app: App, survey: ChannelSurvey, _ form: Form, later: LateAnswer
    ) {
        let outcomes = requests.map { _ in PublishOutcome(events: []) }
        count(requests, app: app, survey: survey) { counts in later(response(requests, outcomes, counts: counts, form)) }
    }

    /// Shows an event without a policy to whoever looks: it goes by the loops alone.
    private func note(_ event: PublishRequest, app: App) {
        guard let live, live.isWatched else { return }
        for channel in event.channels {
            live.noteWithoutWaiting(app: app.id, .event, channel: channel.text, user: nil) {
                .event(name: event.name, id: nil, policy: nil, recipients: nil, sequence: nil)
            }
        }
    }

    static func publication(_ request: PublishRequest, app: App, engine: ChannelEngine) -> Publication {
        Publication(
            app: app.index,
            frames: ServerEvent.eventFrames(name: request.name, channels: request.channels, data: request.data),
            excluded: request.excludedSocketID.flatMap(engine.connection(socketID:)),
            cacheOrder: request.channels.contains { $0.kind.isCache } ? engine.directory.nextOrder() : nil, arrivedAt: engine.arrivedAt)
    }

    private static func event(_ request: PublishRequest, app: App) -> NodeMessage.Event {
        NodeMessage.Event(
            app: app.id, name: request.name, channels: request.channels, data: request.data, excluded: request.excludedSocketID)
    }

    private func submit(
        _ requests: [PublishRequest], app: App, _ form: Form, later: LateAnswer
    ) -> HTTPResponse? {
        let survey = survey
        let taken = delivery.submit(
            PublishCommand(app: app, requests: requests, arrivedAt: engine.arrivedAt) { result in
                switch result {
                case .success(let outcomes):
                    Self.count(requests, app: app, survey: survey) { counts in
                        later(Self.response(requests, outcomes, counts: counts, form))
                    }
                case .failure(let refusal): later(.error(refusal.status, refusal.sentence))
                }
            })
        return taken ? nil : Self.tooMany
    }

    /// `submit`, at most once per key. Requested counts are taken first, because the answer is committed with the events.
    private func publishOnce(
        _ requests: [PublishRequest], _ key: IdempotencyKey, digest: [UInt8], app: App, _ form: Form,
        later: LateAnswer
    ) {
        let (delivery, survey, arrivedAt) = (delivery, survey, engine.arrivedAt)
        answers.once(key, digest: digest, later: later) { claim in
            Self.count(requests, app: app, survey: survey) { counts in
                var command = PublishCommand(app: app, requests: requests, arrivedAt: arrivedAt) { outcomes in
                    [claim.record(Self.response(requests, outcomes, counts: counts, form))]
                } respond: { result in
                    switch result {
                    case .success(let outcomes): claim.finish(Self.response(requests, outcomes, counts: counts, form))
                    case .failure(let refusal): claim.finish(.error(refusal.status, refusal.sentence))
                    }
                }
                command.key = key.text
                if !delivery.submit(command) { claim.finish(Self.tooMany) }
            }
        }
    }

    static var tooMany: HTTPResponse {
        .error(503, "too many publishes are waiting to be stored: try again in a moment")
    }

    /// Counts that the requests ask for. Calls `then` at once if there are none, else after every loop's answer.
    private static func count(
        _ requests: [PublishRequest], app: App, survey: ChannelSurvey,
        then: @escaping @Sendable ([ChannelName: HomeRegistry.Summary]) -> Void
    ) {
        let asked = Set(requests.flatMap { $0.attributes.isEmpty ? [] : $0.channels })
        if asked.isEmpty { return then([:]) }
        // The event is on its way: without an answer the counts are 0, and no error asks for it again.
        survey.summaries(app, of: asked) { then($0 ?? [:]) }
    }

    /// Deterministic: the stored answer and the sent one are made separately and must be equal.
    private static func response(
        _ requests: [PublishRequest], _ outcomes: [PublishOutcome], counts: [ChannelName: HomeRegistry.Summary], _ form: Form
    ) -> HTTPResponse {
        assert(requests.count == outcomes.count, "\(requests.count) requests have \(outcomes.count) outcomes")
        // Closures: key paths would cost as much as the checks of the publish itself.
        let isPlain = requests.allSatisfy { $0.attributes.isEmpty } && outcomes.allSatisfy { $0.events.isEmpty }
        switch form {
        case _ where isPlain, .deprecated: return plain(form)
        case .batch: return batch(requests, outcomes, counts: counts)
        case .event: return event(requests, outcomes, counts: counts)
        }
    }

    /// The answer to a publish that asks for nothing.
    private static func plain(_ form: Form) -> HTTPResponse {
        form == .deprecated
            ? HTTPResponse(status: 202, contentType: "text/plain; charset=utf-8", body: Array("202 ACCEPTED".utf8))
            : HTTPResponse(status: 200, body: emptyObject)
    }

    private static let emptyObject = Array("{}".utf8)

    private static func batch(
        _ requests: [PublishRequest], _ outcomes: [PublishOutcome], counts: [ChannelName: HomeRegistry.Summary]
    ) -> HTTPResponse {
        let items = zip(requests, outcomes).map { request, outcome in
            var members = request.channels.first.map { attributes(request, of: $0, counts) } ?? [:]
            members.merge(eventMembers(outcome)) { current, _ in current }
            return JSONValue.object(members)
        }
        return .json(["batch": .array(items)])
    }

    private static func event(
        _ requests: [PublishRequest], _ outcomes: [PublishOutcome], counts: [ChannelName: HomeRegistry.Summary]
    ) -> HTTPResponse {
        var members = outcomes.first.map(eventMembers) ?? [:]
        if let request = requests.first, !request.attributes.isEmpty {
            let channels = request.channels.map { channel in
                (channel.text, JSONValue.object(attributes(request, of: channel, counts)))
            }
            members["channels"] = .object(Dictionary(channels, uniquingKeysWith: { first, _ in first }))
        }
        return .json(.object(members))
    }

    /// The attributes that `info` requests; a channel's cache holds the event just published.
    private static func attributes(
        _ request: PublishRequest, of channel: ChannelName, _ counts: [ChannelName: HomeRegistry.Summary]
    ) -> [String: JSONValue] {
        let cached = (data: request.data.content, secondsLeft: ChannelEngine.cacheSeconds)
        return ChannelsResource.attributes(request.attributes, of: channel, counts[channel], cached: cached)
    }

    /// `event_id`, and `event_ids` by channel if one publish became several events.
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

extension PublishRequest {
    /// Whether the event is all that the request asks for.
    fileprivate var isPlain: Bool { !isDryRun && deliverAt == nil && idempotencyKey == nil && attributes.isEmpty }
}

extension PublishLimits {
    /// The app's own limits.
    init(_ app: App) {
        self.init()
        eventDataBytesMax = app.eventDataBytesMax
    }
}
