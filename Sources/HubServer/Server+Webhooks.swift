internal import HubChannels
internal import HubCore
internal import HubDelivery
internal import HubWebhooks
internal import Logging

/// From the configuration to what the webhooks need.
extension Server {
    /// Nil when no app has webhooks.
    static func webhooks(
        _ configuration: Configuration, store: any WebhookStore, time: any TimeSource, logger: Logger
    ) throws -> WebhookService? {
        let endpoints = configuration.webhookEndpoints
        return endpoints.isEmpty ? nil : try WebhookService(endpoints: endpoints, store: store, time: time, logger: logger)
    }
}

extension Configuration {
    /// Every address of every app, with the app's first key, which signs.
    var webhookEndpoints: [WebhookEndpoint] {
        apps.enumerated().flatMap { index, app in
            guard let credential = app.credentials.first else { return [WebhookEndpoint]() }
            return app.webhooks.map { webhook in
                WebhookEndpoint(
                    app: index, appID: app.id, key: credential.key, secret: credential.secret, url: webhook.url,
                    kinds: ChannelFact.Kinds(webhook.events.map(\.kind)))
            }
        }
    }
}

extension Configuration.App {
    /// The facts that the engine has to report so that the app's webhooks can be told of what they ask for.
    var factKinds: ChannelFact.Kinds { ChannelFact.Kinds(webhooks.flatMap(\.events).map(\.kind)).withCounterparts }
}

extension WebhookEvent {
    fileprivate var kind: ChannelFact.Kinds {
        switch self {
        case .channelOccupied: .occupied
        case .channelVacated: .vacated
        case .memberAdded: .memberAdded
        case .memberRemoved: .memberRemoved
        case .clientEvent: .clientEvent
        case .cacheMiss: .cacheMiss
        case .subscriptionCount: .subscriptionCount
        }
    }
}
