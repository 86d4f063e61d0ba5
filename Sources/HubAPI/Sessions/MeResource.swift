internal import HubCore
internal import HubDefinitions
internal import HubDelivery
internal import PusherProtocol

/// `PUT|POST /me/state`, `PUT|DELETE /me/device`, `GET /me/events` and `POST /me/receipts`.
///
/// An app speaks for the device that its participant token was issued to.
struct MeResource: Sendable {
    let bearers: BearerCheck
    let delivery: any AttendancePort
    let shelf: DeviceRegistry
    let history: HistoryResource
    let receipts: ReceiptsResource
    let time: any TimeSource
    /// Limits on work for the single delivery task, so that no client can fill its inbox.
    private let statePace = PaceGate("states of this participant")
    private let receiptPace = PaceGate("receipts of this participant")
    private let devicePace = PaceGate("device registrations of this participant", .registrations)
    private let eventsPace = PaceGate("pages of events for this participant")

    init(
        bearers: BearerCheck, delivery: any AttendancePort, shelf: DeviceRegistry, history: HistoryResource, receipts: ReceiptsResource,
        time: any TimeSource
    ) {
        self.bearers = bearers
        self.delivery = delivery
        self.shelf = shelf
        self.history = history
        self.receipts = receipts
        self.time = time
    }

    /// For apps that cannot use the socket, for instance just before they are suspended.
    func state(_ request: HTTPRequest) async throws -> HTTPResponse {
        let bearer: Bearer
        switch request.method {
        case "PUT": bearer = try await bearers.bearer(of: request)
        case "POST": bearer = try await beaconBearer(of: request)
        default: throw APIError.methodNotAllowed(request.method, allowed: ["PUT", "POST"])
        }
        try statePace.pass(bearer, now: time.monotonicNanoseconds)
        let body = try JSONBody(request.body)
        guard let state = try body.choice("state", of: [AppState.foreground, .background]) else {
            throw APIError(400, "state is missing: send \"foreground\" or \"background\"")
        }
        // `keeps_working` has no meaning on the screen.
        let keepsWorking = try body.bool("keeps_working") == true && state == .background
        await delivery.setDeviceState(
            app: bearer.app.id, user: bearer.participant.user, device: bearer.device, state, keepsWorking: keepsWorking)
        return .json(["state": .string(state.rawValue), "keeps_working": .bool(keepsWorking)])
    }

    /// A page that goes away has `navigator.sendBeacon` only, which sets no header: the token is a member of the body.
    private func beaconBearer(of request: HTTPRequest) async throws -> Bearer {
        guard request.body.count <= Self.beaconBytesMax else {
            throw APIError(413, "the body has \(request.body.count) bytes: send at most \(Self.beaconBytesMax)")
        }
        guard let token = try JSONBody(request.body).string("token", charactersMax: Self.beaconBytesMax) else {
            throw APIError.unauthorized("the participant token is missing: send what joining returned as the body's member token")
        }
        return try await bearers.bearer(token: token)
    }

    private static let beaconBytesMax = 8192

    /// Missing members keep their values: a refreshed token does not change the person's consent.
    func device(_ request: HTTPRequest) async throws -> HTTPResponse {
        switch request.method {
        case "PUT":
            let bearer = try await pacedBearer(of: request)
            let owner = bearer.deviceOwner
            let registration = try DeviceRegistration(JSONBody(request.body))
            try registration.requireToken()
            let former = try await shelf.stored(owner)
            return .json(
                DeviceRegistry.answer(
                    try await shelf.put(
                        registration, of: owner, by: .participant(session: bearer.participant.session), former: former, keepsFormer: true)))
        case "DELETE":
            try await shelf.delete(try await pacedBearer(of: request).deviceOwner)
            return .json([:])
        default: throw APIError.methodNotAllowed(request.method, allowed: ["PUT", "DELETE"])
        }
    }

    func events(_ request: HTTPRequest) async throws -> HTTPResponse {
        guard request.method == "GET" || request.method == "HEAD" else {
            throw APIError.methodNotAllowed(request.method, allowed: ["GET", "HEAD"])
        }
        let bearer = try await bearers.bearer(of: request)
        try eventsPace.pass(bearer, now: time.monotonicNanoseconds)
        try await bearers.requirePerson(bearer)
        return try await history.own(request, bearer)
    }

    private func pacedBearer(of request: HTTPRequest) async throws -> Bearer {
        let bearer = try await bearers.bearer(of: request)
        try devicePace.pass(bearer, now: time.monotonicNanoseconds)
        return bearer
    }

    func receipt(_ request: HTTPRequest) async throws -> HTTPResponse {
        guard request.method == "POST" else { throw APIError.methodNotAllowed(request.method, allowed: ["POST"]) }
        let bearer = try await bearers.bearer(of: request)
        try receiptPace.pass(bearer, now: time.monotonicNanoseconds)
        return try await receipts.respond(to: request, bearer, reachesPerson: try await bearers.reachesPerson(bearer))
    }
}
