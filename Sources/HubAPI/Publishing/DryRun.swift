internal import HubCore
internal import HubDefinitions
internal import HubDelivery
internal import PusherProtocol

/// `POST /apps/{app}/events` with `dry_run`: who would get the event, how and why. Nothing is stored, sent or counted.
struct DryRun {
    let delivery: any EventPort

    /// Decides on the delivery task, by the same rules and in the same order as a publish.
    func respond(
        to request: PublishRequest, app: App, later: LateAnswer
    ) -> HTTPResponse? {
        guard request.deliverAt == nil else {
            return .error(400, "dry_run says what an event would come to now, which says nothing of deliver_at: leave it out")
        }
        guard request.attributes.isEmpty else { return .error(400, "dry_run does not go with info: leave one of them out") }
        guard request.channels.count <= EventForecast.channelsMax else {
            return .error(400, "dry_run takes at most \(EventForecast.channelsMax) channels: ask several times")
        }
        let command = PublishCommand(app: app, requests: [request], purpose: .forecast) { result in
            switch result {
            case .success(let outcomes): later(.json(Self.answer(outcomes.first?.forecasts ?? [])))
            case .failure(let refusal): later(.error(refusal.status, refusal.sentence))
            }
        }
        return delivery.submit(command) ? nil : EventsResource.tooMany
    }

    private static func answer(_ forecasts: [EventForecast]) -> JSONValue {
        let channels = forecasts.map { ($0.channel, channel($0)) }
        return ["dry_run": true, "channels": .object(Dictionary(channels, uniquingKeysWith: { first, _ in first }))]
    }

    private static func channel(_ forecast: EventForecast) -> JSONValue {
        let decisions = forecast.choices.map { ($0.key.word, JSONValue.int(Int64($0.value))) }
        return [
            "definition": JSONValue(orNull: forecast.definition),
            "policy": JSONValue(orNull: forecast.policy?.rawValue),
            "expires_in_ms": forecast.lifetimeMilliseconds.map { .int($0) } ?? .null,
            "recipients": .int(Int64(forecast.recipientCount)),
            "decisions": .object(Dictionary(uniqueKeysWithValues: decisions)),
            "deliveries": .array(forecast.recipients.map(recipient)),
            "more": .bool(forecast.recipients.count < forecast.recipientCount),
        ]
    }

    private static func recipient(_ recipient: EventForecast.Recipient) -> JSONValue {
        [
            "user": .string(recipient.user),
            "known": JSONValue(orNull: recipient.note.state?.rawValue),
            "decision": .string(recipient.note.choice.word),
            "why": .string(recipient.note.why),
            "surface": .string(surface(recipient.note.choice)),
            "wait_ms": recipient.waitMilliseconds.map { .int($0) } ?? .null,
            "devices": .array(recipient.devices.map(JSONValue.string)),
        ]
    }

    /// The surface on which the recipient would be told first.
    private static func surface(_ choice: RecipientNote.Choice) -> String {
        switch choice {
        case .awaited, .socketOnly, .seen: "socket"
        case .pushed: "push"
        default: "none"
        }
    }
}
