internal import HubConfiguration
internal import HubCore
internal import HubDelivery
internal import HubWebhooks
internal import Logging
internal import PusherProtocol

/// Webhooks, made from the configuration.
extension Server {
    /// Makes the service; nil if no app has webhooks.
    static func webhooks(
        _ configuration: Configuration, store: any WebhookStore, time: any TimeSource, logger: Logger
    ) throws -> WebhookService? {
        let endpoints = configuration.webhookEndpoints
        return endpoints.isEmpty ? nil : try WebhookService(endpoints: endpoints, store: store, time: time, logger: logger)
    }
}

extension Configuration {
    /// All addresses of all apps, with each app's first key, which signs.
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
    /// Kinds of facts that the engine has to report for the app's webhooks.
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
