internal import HubChannels
internal import PusherProtocol

/// The `app_key` of a request without a participant token or a signature.
enum AppKey {
    static let charactersMax = 100

    static func app(_ key: String, of apps: AppDirectory) throws(APIError) -> App {
        guard let app = apps.app(key: key) else { throw APIError(400, "app_key is unknown: send the key of the app") }
        guard app.isEnabled else { throw APIError(403, "the app is disabled") }
        return app
    }
}
