internal import HubChannels
internal import HubCore
internal import HubDelivery
internal import PusherProtocol

/// `POST /games`: registers an installation's device token before its first session. A later join under the same secret id takes the
/// token along. Nothing else is read or changed, because the caller has proven nothing.
struct WaitingDevices: Sendable {
    let apps: AppDirectory
    let shelf: DeviceRegistry
    /// Nil: no limit.
    let gate: PaceGate?
    let time: any TimeSource

    func respond(to request: HTTPRequest) async throws -> HTTPResponse {
        guard request.method == "POST" else { throw APIError.methodNotAllowed(request.method, allowed: ["POST"]) }
        try gate?.pass(PeerName.of(request.remoteAddress), now: time.monotonicNanoseconds)
        let body = try JSONBody(request.body)
        let app = try app(of: body)
        guard let client = request.headers["x-client-id"], client.unicodeScalars.count <= Field.deviceIDCharactersMax,
            client.utf8.allSatisfy({ (0x21...0x7E).contains($0) }), let installation = InstallationID(client)
        else {
            throw APIError(
                400,
                "X-Client-Id is missing or no secret: send an id that the installation made up at random, such as a UUID, with at least "
                    + "\(InstallationID.charactersMin) characters, \(InstallationID.differentMin) of them different")
        }
        let registration = try DeviceRegistration(body, names: .join)
        guard registration.token != nil else { throw APIError(400, "device_token is missing: send what the push gateway's SDK gave") }
        let owner = DeviceRegistration.Owner(app: app.id, user: installation.owner, device: installation.handle)
        let former = try await shelf.stored(owner)
        let device = try await shelf.put(registration, of: owner, by: .installation, former: former, keepsFormer: true)
        return .json([
            "client_id": .string(client), "platform": .string(device.platform.rawValue), "provider": .string(device.provider.rawValue),
            "environment": .string(device.environment.rawValue),
        ])
    }

    /// The only app, or the one whose key the body names: without a join code nothing else identifies it.
    private func app(of body: JSONBody) throws(APIError) -> App {
        if let key = try body.string("app_key", charactersMax: AppKey.charactersMax) { return try AppKey.app(key, of: apps) }
        let present = Array(apps.table.present.prefix(2))
        guard present.count == 1, let app = present.first else {
            throw APIError(400, "app_key is missing: this hub serves several apps")
        }
        guard app.isEnabled else { throw APIError(403, "the app is disabled") }
        return app
    }
}
