package import HubCore

/// Everything an operator can choose, checked and complete: what the composition root starts from.
package struct Configuration: Sendable, Equatable {
    package var listen = Listen()
    /// At least one; ids and keys are unique.
    package var apps: [App] = []
    package var limits = Limits()
    package var store = Setting<Store>(.sqlite(path: "./data/tandem.db"), .fallback)
    package var backplane = Setting<Backplane>(.local, .fallback)
    /// Folder of channel definitions; nil: the bundled ones.
    package var channels = Setting<String?>(nil, .fallback)
    /// Folder of what the server writes.
    package var data = Setting("./data", .fallback)
    package var logLevel = Setting(LogLevel.info, .fallback)
    /// Origins of browser apps that may use the participant routes; empty: none.
    package var corsOrigins: [String] = []
    package var push = Push()
    package var metrics = Metrics()
    /// Settings that ask for something this version does not do yet, each with its place: `backplane (tandem.yaml:12)`.
    package var notYetInForce: [String] = []
    /// Settings that can be used and should not be, each with its place and the remedy.
    package var warnings: [String] = []
    /// The configuration file, when some of the secrets stand in it.
    package var fileWithSecrets: String?
    /// Variables that begin with `TANDEM_` and mean nothing: probably misspelt.
    package var unknownEnvironment: [String] = []

    /// Where the server can be reached.
    package struct Listen: Sendable, Equatable {
        package var host = Setting("127.0.0.1", .fallback)
        /// 0: any free port.
        package var port = Setting(6001, .fallback)
        /// Nil: one for each core.
        package var loops = Setting<Int?>(nil, .fallback)
        package var tls: TLS?
        /// Every connection begins with a proxy's word on whose it is.
        package var proxyProtocol = false
    }

    /// Files in PEM.
    package struct TLS: Sendable, Equatable {
        package var certificate: Setting<String>
        package var key: Setting<String>
    }

    /// One tenant: its credentials and what its clients may do.
    package struct App: Sendable, Equatable {
        /// Digits.
        package var id: String
        /// At least one; the first is the app's `key` and `secret` where they are given.
        package var credentials: [AppCredential]
        /// False: its clients are closed with 4003.
        package var isEnabled = true
        /// 0: no limit.
        package var connectionsMax = 0
        package var clientEvents = true
        /// Of one connection.
        package var clientEventsPerSecond = 10
        package var subscriptionCount = false
        /// In one channel.
        package var presenceMembersMax = 100
        /// In a channel with more than 100 members, how long leaving waits to be told.
        package var presenceLinger = Duration.seconds(3)
        package var eventDataBytesMax = 10_240
        /// What clients are told; whole seconds.
        package var activityTimeout = Duration.seconds(120)
        /// Of silence, before the server pings.
        package var pingInterval = Duration.seconds(15)
        /// After a ping without any answer the connection is closed.
        package var pongTimeout = Duration.seconds(10)
        /// Empty: all.
        package var allowedOrigins: [String] = []
        package var watchlist = true
        package var webhooks: [Webhook] = []
        /// Its own credentials; a gateway it has none for is the common one's.
        package var push = Push()

        /// An app with everything else at its default.
        package init(id: String, key: String, secret: String) {
            self.init(id: id, credentials: [AppCredential(key: key, secret: secret)])
        }

        init(id: String, credentials: [AppCredential]) {
            self.id = id
            self.credentials = credentials
        }
    }

    /// An address that is told of events.
    package struct Webhook: Sendable, Equatable {
        package var url: String
        package var events: [WebhookEvent]

        package init(url: String, events: [WebhookEvent]) {
            self.url = url
            self.events = events
        }
    }

    /// Bounds for the whole server.
    package struct Limits: Sendable, Equatable {
        /// WebSocket connections of all apps together. 0: no limit; beyond: 4100.
        package var connectionsMax = 0
        /// Connections of one address, HTTP included. 0: no limit.
        package var connectionsPerAddress = 0
        /// Whose word on whom they stand for is believed.
        package var trustedProxies: [IPNetwork] = []
        package var requestTimeout = Duration.seconds(10)
        /// Of one connection that does not keep up; beyond: 4100.
        package var sendQueueBytesMax = 1 << 20
        /// Memory of all that do not keep up, shared out equally between the loops; beyond: 4100 for those furthest behind.
        package var sendQueueBytesTotalMax = 256 << 20
        /// From one address; beyond it its joins take turns.
        package var wrongJoinCodesPerMinute = 10
        /// From one address, twice as many at once; beyond it: 429. 0: no limit.
        package var joinsPerMinute = 300

        package init() {}
    }

    /// Where durable state is kept.
    package enum Store: Sendable, Equatable {
        case sqlite(path: String)
        /// The whole address, which can contain a password: not for messages.
        case postgres(url: String)
    }

    /// What connects the nodes.
    package enum Backplane: Sendable, Equatable {
        case local
        /// The whole address, which can contain a password: not for messages.
        case redis(url: String)
    }

    /// What is told at `/metrics`. The token is in no description of it.
    package struct Metrics: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
        /// What whoever reads them has to send; nil: nothing where only this machine reaches the hub, and else nobody may.
        package var token: String?

        package init(token: String? = nil) { self.token = token }

        package var description: String { token == nil ? "no token" : "a token" }
        package var customMirror: Mirror { Mirror(self, children: ["token": description]) }
    }

    /// The push gateways.
    package struct Push: Sendable, Equatable {
        /// Nil: APNs pushes are logged and not sent.
        package var apns: APNs?
        /// Nil: FCM pushes are logged and not sent.
        package var fcm: FCM?
        /// The environment of device tokens that came without one.
        package var apnsSandboxByDefault = false
        /// A device whose app did not tell its token for longer than this is passed over by `sync` and `push_only`.
        package var staleAfter = Duration.seconds(30 * 86_400)

        package init() {}
    }

    /// Credentials for Apple's gateway.
    package struct APNs: Sendable, Equatable {
        /// File with the private key in PEM (`.p8`).
        package var keyPath: Setting<String>
        package var keyID: String
        package var teamID: String
        package var topic: String
        /// Where the sandbox has a key of its own.
        package var sandboxKey: SandboxKey?
        /// Another address than Apple's, for simulators.
        package var url: String?
        /// The same for the sandbox; nil: where `url` says.
        package var sandboxURL: String?
        package var caFile: Setting<String>?
    }

    /// A key that Apple issued for the sandbox alone.
    package struct SandboxKey: Sendable, Equatable {
        /// File with the private key in PEM (`.p8`).
        package var path: Setting<String>
        package var id: String
    }

    /// Credentials for Google's gateway.
    package struct FCM: Sendable, Equatable {
        /// File with the service account in JSON.
        package var serviceAccount: Setting<String>
        /// Another address than Google's, for simulators.
        package var url: String?
        package var caFile: Setting<String>?
        /// The project's quota.
        package var messagesPerMinute: Int
    }
}

/// What a webhook can be told of, as Pusher names it.
package enum WebhookEvent: String, Sendable, CaseIterable {
    case channelOccupied = "channel_occupied"
    case channelVacated = "channel_vacated"
    case memberAdded = "member_added"
    case memberRemoved = "member_removed"
    case clientEvent = "client_event"
    case cacheMiss = "cache_miss"
    case subscriptionCount = "subscription_count"
}

/// The levels of swift-log.
package enum LogLevel: String, Sendable, CaseIterable { case trace, debug, info, notice, warning, error, critical }

/// A key with its secret. The secret is in no description of it.
package struct AppCredential: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var key: String
    package var secret: String

    package init(key: String, secret: String) {
        self.key = key
        self.secret = secret
    }

    package var description: String { "key \(key)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: ["key": key]) }
}

/// A value with the place that decided it, so that a later failure can name what to change.
package struct Setting<Value: Sendable & Equatable>: Sendable, Equatable {
    package var value: Value
    package var source: SettingSource

    package init(_ value: Value, _ source: SettingSource) {
        self.value = value
        self.source = source
    }
}

/// Where a setting came from.
package enum SettingSource: Sendable, Equatable, CustomStringConvertible {
    /// Nobody chose it.
    case fallback
    case file(String, line: Int)
    case environment(String)
    case flag(String)

    /// As a message begins: `tandem.yaml:3`, `TANDEM_PORT`, `--port`, `default`.
    package var description: String {
        switch self {
        case .fallback: "default"
        case .file(let file, let line): "\(file):\(line)"
        case .environment(let name), .flag(let name): name
        }
    }
}

/// What the command line of `tandem serve` said; nil: nothing.
package struct ConfigurationFlags: Sendable {
    package var host: String?
    package var port: String?
    package var data: String?
    package var channels: String?
    package var loops: String?
    package var logLevel: String?

    package init(
        host: String? = nil, port: String? = nil, data: String? = nil, channels: String? = nil, loops: String? = nil,
        logLevel: String? = nil
    ) {
        self.host = host
        self.port = port
        self.data = data
        self.channels = channels
        self.loops = loops
        self.logLevel = logLevel
    }
}
