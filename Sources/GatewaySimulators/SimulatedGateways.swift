import HubCore
import HubCrypto

/// Running simulators of APNs and FCM with their control port: one thread each, on loopback by default.
///
/// Every method may be called from any thread. `stop()` ends the simulators, as does releasing the last reference.
package final class SimulatedGateways: Sendable {
    package struct Options: Sendable {
        /// Folder of the keys and settings; created if missing.
        package var folder: String
        package var host = "127.0.0.1"
        /// APNs' production environment. For each port, 0 lets the system choose.
        package var apnsPort: UInt16 = 0
        package var apnsSandboxPort: UInt16 = 0
        package var fcmPort: UInt16 = 0
        package var controlPort: UInt16 = 0
        package var topic = "com.example.app"
        package var teamID = "TANDEMTEAM"
        package var projectID = "tandem-simulated"
        /// Stream limit of an APNs connection before its first success.
        package var apnsStreamsBeforeSuccess = 1
        /// Stream limit of an APNs connection after its first success.
        package var apnsStreamsMax = 500
        package var fcmStreamsMax = 100
        /// How long APNs sends nothing on a new connection, not even settings; up to half a second is added.
        package var apnsGreetingDelayMilliseconds = 0
        /// Lifetime of access tokens, in seconds.
        package var accessTokenSeconds = 3599
        /// False: APNs negotiates HTTP/1.1 only, like a proxy without HTTP/2.
        package var apnsSpeaksHTTP2 = true
        /// False: FCM negotiates HTTP/1.1 only.
        package var fcmSpeaksHTTP2 = true

        package init(folder: String) {
            self.folder = folder
        }
    }

    package let files: GatewayFiles
    package let apnsKeyID: String
    /// Port of the production environment.
    package let apnsPort: UInt16
    package let apnsSandboxPort: UInt16
    package let fcmPort: UInt16
    package let controlPort: UInt16
    /// `https://host:port` without a trailing slash.
    package let apnsURL: String
    package let apnsSandboxURL: String
    package let fcmURL: String
    /// The service account's token endpoint.
    package let tokenURL: String
    /// `http://host:port`.
    package let controlURL: String
    /// The settings in `gateways.env`, in its order.
    package let settings: [(name: String, value: String)]

    private let ledger: Ledger
    private let streamLimit: StreamLimit
    private let tokens: AccessTokens
    private let threads: [ServerThread]
    private let doors: [GatewayProvider: [ServerDoor]]
    private let traffic: [GatewayProvider: TrafficCounter]

    /// Creates or reads the keys, listens on the four ports and writes the files. On return the simulators serve.
    package init(_ options: Options) throws(GatewayError) {
        try Self.check(options)
        let keys = try KeyFolder(folder: options.folder, host: options.host)
        let clock = SystemClock()
        let ledger = Ledger()
        let streamLimit = StreamLimit(beforeSuccess: options.apnsStreamsBeforeSuccess, afterSuccess: options.apnsStreamsMax)
        let tokens = AccessTokens(lifetimeSeconds: options.accessTokenSeconds)
        func tls(_ versions: TLSContext.Versions) throws(GatewayError) -> TLSContext {
            try GatewayError.wrapping {
                try TLSContext(certificatePEM: keys.certificatePEM, privateKeyPEM: keys.certificateKeyPEM, versions: versions)
            }
        }
        let apnsTLS = try tls(options.apnsSpeaksHTTP2 ? .http2 : .http1)
        let fcmTLS = try tls(options.fcmSpeaksHTTP2 ? .both : .http1)
        let (apnsTraffic, fcmTraffic) = (TrafficCounter(), TrafficCounter())
        let traffic: [GatewayProvider: TrafficCounter] = [.apns: apnsTraffic, .fcm: fcmTraffic]

        var started: [ServerThread] = []
        var isComplete = false
        defer { if !isComplete { for thread in started { thread.stop() } } }

        let apnsKeyID = keys.apnsKeyID
        let apnsPublicKey = keys.apnsPublicKey
        func apnsEnd(_ environment: SimulatedEnvironment, port: UInt16, name: String) throws(GatewayError) -> ServerThread {
            try ServerThread(host: options.host, port: port, name: name) { listener, door in
                let service = APNsService(
                    environment: environment, ledger: ledger,
                    tokenCheck: APNsProviderTokenCheck(
                        keyID: apnsKeyID, teamID: options.teamID, publicKey: apnsPublicKey, clock: clock),
                    topic: options.topic, streamLimit: streamLimit, clock: clock)
                ServerLoop(listener: listener, door: door, service: service) { number, descriptor, now in
                    Connection.secured(
                        number: number, descriptor: descriptor, tls: apnsTLS, now: now,
                        greetingDelay: UInt64(options.apnsGreetingDelayMilliseconds)
                    ) {
                        apnsTraffic.session(number, over: $0, streamsMax: streamLimit.beforeSuccess)
                    }
                }.run()
            }
        }
        let apns = try apnsEnd(.production, port: options.apnsPort, name: "APNs (--apns-port)")
        started.append(apns)
        let apnsSandbox = try apnsEnd(.sandbox, port: options.apnsSandboxPort, name: "APNs' sandbox (--apns-sandbox-port)")
        started.append(apnsSandbox)

        let url = { (scheme: String, port: UInt16) in
            "\(scheme)://\(options.host.contains(":") ? "[\(options.host)]" : options.host):\(port)"
        }
        // The assertions' audience contains the port, which only the listener knows.
        let fcmListener = try Listener(host: options.host, port: options.fcmPort, purpose: "FCM (--fcm-port)")
        let account = ServiceAccount(
            projectID: options.projectID, email: "simulated@\(options.projectID).iam.gserviceaccount.com",
            keyID: keys.serviceAccountKeyID, tokenURL: url("https", fcmListener.port) + "/token")
        let accountPublicKey = keys.serviceAccountPublicKey
        let fcm = try ServerThread(listener: fcmListener, name: "FCM") { listener, door in
            let service = FCMService(
                ledger: ledger,
                oauth: OAuthEndpoint(
                    account: account, publicKey: accountPublicKey, tokens: tokens, lifetimeSeconds: options.accessTokenSeconds,
                    clock: clock),
                clock: clock)
            ServerLoop(listener: listener, door: door, service: service) { number, descriptor, now in
                Connection.secured(number: number, descriptor: descriptor, tls: fcmTLS, now: now) {
                    fcmTraffic.session(number, over: $0, streamsMax: options.fcmStreamsMax)
                }
            }.run()
        }
        started.append(fcm)

        let doors: [GatewayProvider: [ServerDoor]] = [.apns: [apns.door, apnsSandbox.door], .fcm: [fcm.door]]
        let control = try ServerThread(
            host: options.host, port: options.controlPort, name: "the control API (--control-port)"
        ) { listener, door in
            let service = ControlService(ledger: ledger, streamLimit: streamLimit, tokens: tokens, doors: doors, traffic: traffic)
            ServerLoop(listener: listener, door: door, service: service) { number, descriptor, now in
                Connection(number: number, descriptor: descriptor, transport: .plain, now: now) { _ in
                    HTTP1Session(connection: number)
                }
            }.run()
        }
        started.append(control)

        let settings: [(name: String, value: String)] = [
            ("APNS_KEY_PATH", keys.files.apnsKey(id: apnsKeyID)), ("APNS_KEY_ID", apnsKeyID), ("APNS_TEAM_ID", options.teamID),
            ("APNS_TOPIC", options.topic), ("APNS_USE_SANDBOX", "true"),
            ("GOOGLE_APPLICATION_CREDENTIALS", keys.files.serviceAccount), ("TANDEM_APNS_URL", url("https", apns.port)),
            ("TANDEM_APNS_SANDBOX_URL", url("https", apnsSandbox.port)),
            ("TANDEM_FCM_URL", url("https", fcm.port)), ("TANDEM_PUSH_CA_FILE", keys.files.authority),
            ("TANDEM_GATEWAYS_CONTROL", url("http", control.port)),
        ]
        try keys.writeServiceAccount(account)
        try keys.writeEnvironment(settings)
        isComplete = true

        files = keys.files
        self.apnsKeyID = apnsKeyID
        apnsPort = apns.port
        apnsSandboxPort = apnsSandbox.port
        fcmPort = fcm.port
        controlPort = control.port
        apnsURL = url("https", apns.port)
        apnsSandboxURL = url("https", apnsSandbox.port)
        fcmURL = url("https", fcm.port)
        tokenURL = account.tokenURL
        controlURL = url("http", control.port)
        self.settings = settings
        self.ledger = ledger
        self.streamLimit = streamLimit
        self.tokens = tokens
        self.doors = doors
        self.traffic = traffic
        threads = started
    }

    deinit {
        stop()
    }

    /// Ends every connection and thread. On return the ports are free; the keys stay. Idempotent.
    package func stop() {
        for thread in threads { thread.stop() }
    }

    /// The recorded requests in order of arrival; nil means any provider or token.
    /// - Parameter after: only records with a higher `sequence`.
    package func requests(provider: GatewayProvider? = nil, token: String? = nil, after: Int = 0) -> [RecordedRequest] {
        ledger.requests {
            $0.sequence > after && (provider == nil || $0.provider == provider) && (token == nil || $0.token == token)
        }
    }

    /// Oldest records dropped since the last clearing (`SimulatorLimits.recordsMax`).
    package var droppedRequests: Int { ledger.counts.dropped }

    package func clearRequests() {
        ledger.clearRequests()
    }

    /// Replaces the scripted answers of a token; `faults` are used up in order.
    /// - Parameters:
    ///   - token: in the form of records, APNs tokens in lower case; `*` for every device token; `oauth` with that provider.
    ///   - provider: nil for both gateways.
    package func setFaults(_ faults: [GatewayFault], token: String, provider: GatewayProvider? = nil) throws(GatewayError) {
        try ledger.setFaults(faults, token: token, provider: token == GatewayProvider.oauth.rawValue ? .oauth : provider)
    }

    /// Scripts a single fault for a token.
    package func setFault(_ fault: GatewayFault, token: String, provider: GatewayProvider? = nil) throws(GatewayError) {
        try setFaults([fault], token: token, provider: provider)
    }

    /// Removes all scripted faults.
    package func removeAllFaults() {
        ledger.removeAllFaults()
    }

    /// Announces a new SETTINGS_MAX_CONCURRENT_STREAMS on every APNs connection, and on later ones.
    package func setAPNsStreamsMax(_ streamsMax: Int) {
        streamLimit.afterSuccess = streamsMax
        for door in doors[.apns] ?? [] { door.send(.announce(streamsMax: streamsMax)) }
    }

    /// Makes all access tokens issued so far unauthenticated.
    package func revokeAccessTokens() {
        tokens.revokeAll()
    }

    /// Sends GOAWAY on every connection of the gateway; requests that arrived are answered.
    package func goAway(_ provider: GatewayProvider, reason: String = "Shutdown") {
        for door in doors[provider] ?? [] { door.send(.goAway(reason: reason)) }
    }

    /// Closes every connection of the gateway without an answer.
    package func closeConnections(_ provider: GatewayProvider) {
        for door in doors[provider] ?? [] { door.send(.closeConnections) }
    }

    /// Stops reading and writing on every open connection of the gateway; new connections are served.
    package func freezeConnections(_ provider: GatewayProvider) {
        for door in doors[provider] ?? [] { door.send(.freezeConnections) }
    }

    /// Traffic of APNs (both environments) or FCM (token endpoint included); always empty for OAuth.
    package func traffic(_ provider: GatewayProvider) -> GatewayTraffic { traffic[provider]?.traffic ?? GatewayTraffic() }

    private static func check(_ options: Options) throws(GatewayError) {
        guard options.topic.wholeMatch(of: /[A-Za-z0-9.\-]{1,155}/) != nil else {
            throw GatewayError("the topic is no bundle id: give letters, digits, dots and hyphens with --topic")
        }
        guard options.projectID.wholeMatch(of: /[a-z0-9\-]{1,63}/) != nil else {
            throw GatewayError("the project id is none of Google's: give small letters, digits and hyphens")
        }
        let streams = [options.apnsStreamsBeforeSuccess, options.apnsStreamsMax, options.fcmStreamsMax]
        guard streams.allSatisfy({ (1...SimulatorLimits.streamsMax).contains($0) }), options.accessTokenSeconds > 0 else {
            throw GatewayError("stream limits are 1 to \(SimulatorLimits.streamsMax), and access tokens live for a second or more")
        }
    }
}
