internal import HubChannels
internal import HubCore
internal import HubDelivery

/// `POST /games`: an installation that names itself leaves its device token before there is any session for it to join. Joining one
/// under the same name later takes the token along.
struct WaitingDevices: Sendable {
    let apps: AppDirectory
    let shelf: DeviceShelf
    /// Nil: no limit.
    let gate: PaceGate?
    let time: any TimeSource

    /// Room for the prefix of `owner` in a user id.
    private static let clientIDCharactersMax = Field.userIDCharactersMax - ownerPrefix.count
    private static let ownerPrefix = "client:"

    /// Who the device belongs to until somebody joins with it. A backend can notify this user like any other.
    static func owner(ofInstallation id: String) -> String { ownerPrefix + id }

    func respond(to request: HTTPRequest) async throws -> HTTPResponse {
        guard request.method == "POST" else { throw APIError.methodNotAllowed(request.method, allowed: ["POST"]) }
        try gate?.pass(PeerName.of(request.remoteAddress), now: time.monotonicNanoseconds)
        let body = try JSONBody(request.body)
        let app = try app(of: body)
        guard let client = request.headers["x-client-id"], (1...Self.clientIDCharactersMax).contains(client.utf8.count),
            client.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else {
            throw APIError(
                400, "X-Client-Id is missing or no name: send the installation's own, 1 to \(Self.clientIDCharactersMax) printable characters without spaces")
        }
        let registration = try DeviceRegistration(body, names: .join)
        guard registration.token != nil else { throw APIError(400, "device_token is missing: send what the push gateway's SDK gave") }
        // Where it belongs to somebody by now, it stays theirs.
        let user = try await shelf.directory.installation(app: app.id, id: client)?.user ?? Self.owner(ofInstallation: client)
        let owner = DeviceRegistration.Owner(app: app.id, user: user, device: client)
        let former = try await shelf.stored(owner)
        let device = try await shelf.put(registration, of: owner, former: former, keepsFormer: true)
        return .json([
            "client_id": .string(client), "platform": .string(device.platform.rawValue), "provider": .string(device.provider.rawValue),
            "environment": .string(device.environment.rawValue),
        ])
    }

    /// The only one, or the one whose key the body names: there is no join code yet to tell it from.
    private func app(of body: JSONBody) throws(APIError) -> App {
        let key = try body.string("app_key", charactersMax: Self.appKeyCharactersMax)
        let found = key.map { apps.app(key: $0) } ?? (apps.apps.count == 1 ? apps.apps.first : nil)
        guard let app = found else {
            throw APIError(400, key == nil ? "app_key is missing: this hub serves several apps" : "app_key is unknown: send the key of the app")
        }
        guard app.isEnabled else { throw APIError(403, "the app is disabled") }
        return app
    }

    private static let appKeyCharactersMax = 100
}
