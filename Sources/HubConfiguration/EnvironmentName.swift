/// Environment variables that are settings.
package enum EnvironmentName: String, CaseIterable, Sendable {
    case host = "TANDEM_HOST"
    case port = "TANDEM_PORT"
    case data = "TANDEM_DATA"
    case channels = "TANDEM_CHANNELS"
    case loops = "TANDEM_LOOPS"
    case appID = "TANDEM_APP_ID"
    case appKey = "TANDEM_APP_KEY"
    case appSecret = "TANDEM_APP_SECRET"
    case store = "TANDEM_STORE"
    case backplane = "TANDEM_BACKPLANE"
    case tlsCertificate = "TANDEM_TLS_CERT"
    case tlsKey = "TANDEM_TLS_KEY"
    case metricsToken = "TANDEM_METRICS_TOKEN"
    case operatorKey = "TANDEM_OPERATOR_KEY"
    case operatorSecret = "TANDEM_OPERATOR_SECRET"
    case consolePassword = "TANDEM_CONSOLE_PASSWORD"
    case apnsKeyPath = "APNS_KEY_PATH"
    case apnsKeyID = "APNS_KEY_ID"
    case apnsTeamID = "APNS_TEAM_ID"
    case apnsTopic = "APNS_TOPIC"
    case apnsUseSandbox = "APNS_USE_SANDBOX"
    case fcmServiceAccount = "GOOGLE_APPLICATION_CREDENTIALS"
    case apnsURL = "TANDEM_APNS_URL"
    case apnsSandboxURL = "TANDEM_APNS_SANDBOX_URL"
    case fcmURL = "TANDEM_FCM_URL"
    case pushCAFile = "TANDEM_PUSH_CA_FILE"

    /// Names that look like settings but are none: probably misspelt.
    ///
    /// Exceptions are variables that an orchestrator injects for a service of this name (`TANDEM_SERVICE_HOST`, `TANDEM_PORT_6001_TCP`).
    /// Others belong to the simulators (`TANDEM_GATEWAYS_CONTROL`) and to commands (`TANDEM_URL`).
    static func unknown(in environment: [String: String]) -> [String] {
        environment.keys.filter { name in
            name.hasPrefix("TANDEM_") && EnvironmentName(rawValue: name) == nil && !name.hasPrefix("TANDEM_SERVICE_")
                && !name.hasPrefix("TANDEM_PORT_") && !name.hasPrefix("TANDEM_GATEWAYS_") && name != "TANDEM_URL"
        }.sorted()
    }
}
