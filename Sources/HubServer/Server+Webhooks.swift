internal import HubChannels
internal import HubConfiguration
internal import HubCore
internal import HubStorage
internal import HubWebhooks
internal import Logging
internal import PusherProtocol

/// Webhooks, made from the configuration.
extension Server {
    /// Makes the service; nil if no app has webhooks.
    static func webhooks(
        _ configuration: Configuration, store: any HubStore, time: any TimeSource, logger: Logger
    ) throws -> WebhookService? {
        let endpoints = configuration.webhookEndpoints
        if endpoints.isEmpty { return nil }
        var owns: (@Sendable (String) -> Bool)?
        if case .redis = configuration.backplane.value { owns = { store.owns(Partition.ofWebhooks(app: $0)) } }
        return try WebhookService(endpoints: endpoints, store: store, time: time, logger: logger, owns: owns)
    }

    /// Where the loops' facts go: with several nodes through the stream, which all of them read in one order.
    static func facts(_ webhooks: WebhookService?, _ nodes: Nodes?) -> @Sendable ([ChannelFact]) -> Void {
        { facts in
            if let nodes { nodes.exchange.report(facts) } else { webhooks?.report(facts) }
        }
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
