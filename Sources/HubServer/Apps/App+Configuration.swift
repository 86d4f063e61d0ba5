internal import HubConfiguration
internal import PusherProtocol

extension App {
    /// An app of the configuration file.
    init(_ settings: Configuration.App, index: Int) {
        let secrets = settings.credentials.map { ($0.key, $0.secret) }
        self.init(index: index, id: settings.id, secrets: Dictionary(secrets, uniquingKeysWith: { first, _ in first }))
        signingKey = settings.credentials.first?.key
        isEnabled = settings.isEnabled
        connectionsMax = settings.connectionsMax
        clientEvents = settings.clientEvents
        clientEventsPerSecond = settings.clientEventsPerSecond
        presenceMembersMax = settings.presenceMembersMax
        presenceLinger = settings.presenceLinger
        eventDataBytesMax = settings.eventDataBytesMax
        activityTimeoutSeconds = Int(settings.activityTimeout.components.seconds)
        pingInterval = settings.pingInterval
        pongTimeout = settings.pongTimeout
        allowedOrigins = settings.allowedOrigins
        factKinds = settings.factKinds
        subscriptionCount = settings.subscriptionCount
        watchlist = settings.watchlist
    }
}
