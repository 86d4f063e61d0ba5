package import HubCore

/// All settings of an operator, checked and complete, from which `Server` is made.
package struct Configuration: Sendable, Equatable {
    /// Address, port and loops.
    package var listen = Listen()
    /// At least one app; ids and keys are unique.
    package var apps: [App] = []
    /// Bounds of the whole server.
    package var limits = Limits()
    /// Place of durable state.
    package var store = Setting<Store>(.sqlite(path: "./data/tandem.db"), .fallback)
    /// Connection between nodes.
    package var backplane = Setting<Backplane>(.local, .fallback)
    /// Folder of channel definitions; nil for the bundled ones.
    package var channels = Setting<String?>(nil, .fallback)
    /// Folder of the files that the server writes.
    package var data = Setting("./data", .fallback)
    /// Least level of log lines.
    package var logLevel = Setting(LogLevel.info, .fallback)
    /// Origins of browser apps that may use the participant routes; empty for none.
    package var corsOrigins: [String] = []
    /// Common credentials of the push gateways.
    package var push = Push()
    /// Access to `/metrics`.
    package var metrics = Metrics()
    /// Key and secret that sign requests of operators; nil: there are no such requests.
    package var operatorCredential: AppCredential?
    /// Passwords of the console.
    package var console = Console()
    /// Settings that this version reads but does not support yet, each with its place: `backplane (tandem.yaml:12)`.
    package var notYetInForce: [String] = []
    /// Legal but unwise settings, each with its place and the remedy.
    package var warnings: [String] = []
    /// The configuration file, if it contains secrets; nil otherwise.
    package var fileWithSecrets: String?
    /// Variables that begin with `TANDEM_` and have no meaning: probably misspelt.
    package var unknownEnvironment: [String] = []

    /// The defaults, without apps.
    package init() {}

    /// Address and loops of the server.
    package struct Listen: Sendable, Equatable {
        /// Address or host name to bind.
        package var host = Setting("127.0.0.1", .fallback)
        /// Port; 0 for any free one.
        package var port = Setting(6001, .fallback)
        /// Number of loops; nil for one per core.
        package var loops = Setting<Int?>(nil, .fallback)
        /// Certificate and key; nil for plain connections.
        package var tls: TLS?
        /// Whether every connection begins with the PROXY protocol.
        package var proxyProtocol = false

        /// Whether only this machine can connect.
        package var isLoopback: Bool { NetworkAddress.isLoopback(host.value) }
    }

    /// Paths of files in PEM.
    package struct TLS: Sendable, Equatable {
        /// Certificate with its intermediates.
        package var certificate: Setting<String>
        /// Private key.
        package var key: Setting<String>
    }

    /// A tenant: its credentials, and the limits of its clients.
    package struct App: Sendable, Equatable {
        /// Up to 20 digits.
        package var id: String
        /// At least one; the first is the app's own `key` and `secret`, if given.
        package var credentials: [AppCredential]
        /// Whether clients may connect; otherwise they are closed with 4003.
        package var isEnabled = true
        /// Most connections; 0 for no limit.
        package var connectionsMax = 0
        /// Whether clients may publish events.
        package var clientEvents = true
        /// Most client events per second of one connection.
        package var clientEventsPerSecond = 10
        /// Whether channels announce their number of subscriptions.
        package var subscriptionCount = false
        /// Most members of one presence channel.
        package var presenceMembersMax = 100
        /// Time for which a leaver stays in the list of a channel with more than 100 members.
        package var presenceLinger = Duration.seconds(3)
        /// Largest data of an event, in bytes.
        package var eventDataBytesMax = 10_240
        /// Activity timeout that clients are told; whole seconds.
        package var activityTimeout = Duration.seconds(120)
        /// Silence after which the server pings.
        package var pingInterval = Duration.seconds(15)
        /// Time without any answer to a ping after which the connection is closed.
        package var pongTimeout = Duration.seconds(10)
        /// Origins of allowed pages; empty for all.
        package var allowedOrigins: [String] = []
        /// Whether watchlists work.
        package var watchlist = true
        /// Addresses that get webhooks.
        package var webhooks: [Webhook] = []
        /// The app's own push credentials; the common ones apply to a gateway without.
        package var push = Push()

        /// An app with all other settings at their defaults.
        package init(id: String, key: String, secret: String) {
            self.init(id: id, credentials: [AppCredential(key: key, secret: secret)])
        }

        init(id: String, credentials: [AppCredential]) {
            self.id = id
            self.credentials = credentials
        }
    }

    /// An address for webhooks, with the events it gets.
    package struct Webhook: Sendable, Equatable {
        /// Address that begins with http:// or https://.
        package var url: String
        /// Events to send.
        package var events: [WebhookEvent]

        /// A webhook; the parser checks its address.
        package init(url: String, events: [WebhookEvent]) {
            self.url = url
            self.events = events
        }
    }

    /// Bounds of the whole server.
    package struct Limits: Sendable, Equatable {
        /// Most WebSocket connections of all apps together; 0 for no limit. If exceeded: 4100.
        package var connectionsMax = 0
        /// Most connections per address, HTTP included; 0 for no limit.
        package var connectionsPerAddress = 0
        /// Proxies whose statements about client addresses are believed.
        package var trustedProxies: [IPNetwork] = []
        /// Time for a handshake, a head, a body, or a piece of an answer.
        package var requestTimeout = Duration.seconds(10)
        /// Most bytes that wait for one connection that does not keep up. If exceeded: 4100.
        package var sendQueueBytesMax = 1 << 20
        /// Most memory for all connections that do not keep up, divided equally between the loops. If exceeded: 4100 for those furthest
        /// behind.
        package var sendQueueBytesTotalMax = 256 << 20
        /// Wrong join codes per minute and address; if exceeded, the address's joins take turns.
        package var wrongJoinCodesPerMinute = 10
        /// Joins per minute and address, twice as many at once; 0 for no limit. If exceeded: 429.
        package var joinsPerMinute = 300

        /// The defaults.
        package init() {}
    }

    /// Place of durable state.
    package enum Store: Sendable, Equatable {
        case sqlite(path: String)
        /// The whole address, which may contain a password and so is in no message.
        case postgres(url: String)
    }

    /// Connection between nodes.
    package enum Backplane: Sendable, Equatable {
        case local
        /// The whole address, which may contain a password and so is in no message.
        case redis(url: String)
    }

    /// Access to `/metrics`. No description contains the token.
    package struct Metrics: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
        /// Token that readers have to send. Nil allows everybody if only this machine reaches the hub, and otherwise nobody.
        package var token: String?

        /// Access with a token, or by nil without.
        package init(token: String? = nil) { self.token = token }

        package var description: String { token == nil ? "no token" : "a token" }
        package var customMirror: Mirror { Mirror(self, children: ["token": description]) }
    }

    /// Passwords of the console. No description contains a password or a hash.
    package struct Console: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
        /// Hash of the operator's password, as `tandem console password` prints it.
        package var operatorPasswordHash: String?
        /// Hash of the viewers' password.
        package var viewerPasswordHash: String?
        /// The operator's password itself, from the environment; beats its hash.
        package var operatorPassword: String?

        /// No passwords.
        package init() {}

        /// Whether a password opens the console.
        package var hasPassword: Bool { operatorPasswordHash != nil || viewerPasswordHash != nil || operatorPassword != nil }
        package var description: String { hasPassword ? "a password" : "no password" }
        package var customMirror: Mirror { Mirror(self, children: ["password": description]) }
    }

    /// Credentials of the push gateways.
    package struct Push: Sendable, Equatable {
        /// Nil if APNs pushes are only logged.
        package var apns: APNs?
        /// Nil if FCM pushes are only logged.
        package var fcm: FCM?
        /// Whether device tokens without an environment belong to the sandbox.
        package var apnsSandboxByDefault = false
        /// Age of a token's last word from its app after which `sync` and `push_only` skip the device.
        package var staleAfter = Duration.seconds(30 * 86_400)

        /// No credentials.
        package init() {}
    }

    /// Credentials of Apple's gateway.
    package struct APNs: Sendable, Equatable {
        /// Path of the private key in PEM (`.p8`).
        package var keyPath: Setting<String>
        /// Apple's id of the key.
        package var keyID: String
        /// Apple's id of the team.
        package var teamID: String
        /// Default `apns-topic`: the app's bundle id.
        package var topic: String
        /// The sandbox's own key; nil if both environments share one.
        package var sandboxKey: SandboxKey?
        /// Address instead of Apple's, for simulators.
        package var url: String?
        /// Address of the sandbox; nil for that of `url`.
        package var sandboxURL: String?
        /// Path of certificates to trust, for simulators; nil for the system's.
        package var caFile: Setting<String>?
    }

    /// A key that Apple issued for the sandbox only.
    package struct SandboxKey: Sendable, Equatable {
        /// Path of the private key in PEM (`.p8`).
        package var path: Setting<String>
        /// Apple's id of the key.
        package var id: String
    }

    /// Credentials of Google's gateway.
    package struct FCM: Sendable, Equatable {
        /// Path of the service account in JSON.
        package var serviceAccount: Setting<String>
        /// Address instead of Google's, for simulators.
        package var url: String?
        /// Path of certificates to trust, for simulators; nil for the system's.
        package var caFile: Setting<String>?
        /// Quota of the project; nil: Google's default.
        package var messagesPerMinute: Int?
    }
}

/// Events of webhooks, by Pusher's names.
package enum WebhookEvent: String, Sendable, CaseIterable {
    case channelOccupied = "channel_occupied"
    case channelVacated = "channel_vacated"
    case memberAdded = "member_added"
    case memberRemoved = "member_removed"
    case clientEvent = "client_event"
    case cacheMiss = "cache_miss"
    case subscriptionCount = "subscription_count"
}

/// Levels of swift-log.
package enum LogLevel: String, Sendable, CaseIterable { case trace, debug, info, notice, warning, error, critical }

/// A key with its secret. No description contains the secret.
package struct AppCredential: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Public key, which clients send.
    package var key: String
    /// Secret, which signs.
    package var secret: String

    /// A credential; nothing is checked.
    package init(key: String, secret: String) {
        self.key = key
        self.secret = secret
    }

    package var description: String { "key \(key)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: ["key": key]) }
}

/// A value with its source, so that a later failure can name the setting to change.
package struct Setting<Value: Sendable & Equatable>: Sendable, Equatable {
    /// The value in force.
    package var value: Value
    /// Source of the value.
    package var source: SettingSource

    /// A value from a source.
    package init(_ value: Value, _ source: SettingSource) {
        self.value = value
        self.source = source
    }
}

/// Source of a setting.
package enum SettingSource: Sendable, Equatable, CustomStringConvertible {
    /// The default.
    case fallback
    case file(String, line: Int)
    case environment(String)
    case flag(String)

    /// Begin of a message: `tandem.yaml:3`, `TANDEM_PORT`, `--port`, `default`.
    package var description: String {
        switch self {
        case .fallback: "default"
        case .file(let file, let line): "\(file):\(line)"
        case .environment(let name), .flag(let name): name
        }
    }
}

/// Options of `tandem serve`, unparsed; nil if not given.
package struct ConfigurationFlags: Sendable {
    /// `--host`.
    package var host: String?
    /// `--port`.
    package var port: String?
    /// `--data`.
    package var data: String?
    /// `--channels`.
    package var channels: String?
    /// `--loops`.
    package var loops: String?
    /// `--log-level`.
    package var logLevel: String?

    /// Options; none unless given.
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
