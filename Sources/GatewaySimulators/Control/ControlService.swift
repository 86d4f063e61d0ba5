import HubCore
import HubJSON

/// The control API of the running simulators: plain HTTP/1.1 on a loopback port of its own.
final class ControlService: GatewayService {
    private let ledger: Ledger
    private let streamLimit: StreamLimit
    private let tokens: AccessTokens
    private let doors: [GatewayProvider: [ServerDoor]]
    private let traffic: [GatewayProvider: TrafficCounter]

    private static let resources =
        "GET|DELETE /requests, GET|DELETE /faults, PUT|DELETE /faults/{token}, PUT /settings, DELETE /access-tokens, "
        + "POST /connections/goaway, DELETE /connections, GET /health"

    init(
        ledger: Ledger, streamLimit: StreamLimit, tokens: AccessTokens, doors: [GatewayProvider: [ServerDoor]],
        traffic: [GatewayProvider: TrafficCounter]
    ) {
        self.ledger = ledger
        self.streamLimit = streamLimit
        self.tokens = tokens
        self.doors = doors
        self.traffic = traffic
    }

    func reply(to request: ReceivedRequest, from peer: PeerState) -> Reply {
        do throws(GatewayError) {
            return .respond(try response(to: request))
        } catch {
            return .respond(.error(400, error.message))
        }
    }

    private func response(to request: ReceivedRequest) throws(GatewayError) -> HTTPResponse {
        let segments = request.pathSegments
        switch (request.method, segments.first ?? "", segments.count) {
        case ("GET", "health", 1): return health()
        case ("GET", "requests", 1): return try requests(request)
        case ("DELETE", "requests", 1): ledger.clearRequests()
        case ("GET", "faults", 1): return .json(ledger.faults)
        case ("DELETE", "faults", 1): ledger.removeAllFaults()
        case ("PUT", "faults", 2): try setFaults(request, token: segments[1])
        case ("DELETE", "faults", 2): ledger.removeFaults(token: segments[1])
        case ("PUT", "settings", 1): try changeSettings(request)
        case ("DELETE", "access-tokens", 1): tokens.revokeAll()
        case ("DELETE", "connections", 1): for door in try chosenDoors(request) { door.send(.closeConnections) }
        case ("POST", "connections", 2) where segments[1] == "goaway":
            for door in try chosenDoors(request) { door.send(.goAway(reason: FaultReply.shutdownReason)) }
        default: return .error(404, "no such resource; there are \(Self.resources)")
        }
        return .json(["ok": true])
    }

    private func health() -> HTTPResponse {
        let counts = ledger.counts
        let byProvider = { (numbers: [GatewayProvider: Int]) -> JSONValue in
            var members: [String: JSONValue] = [:]
            for provider in GatewayProvider.allCases { members[provider.rawValue] = .int(Int64(numbers[provider, default: 0])) }
            return .object(members)
        }
        return .json([
            "status": "ok", "received": byProvider(counts.received), "accepted": byProvider(counts.accepted),
            "traffic": .object(Dictionary(uniqueKeysWithValues: traffic.map { ($0.key.rawValue, $0.value.traffic.json) })),
            "stored": .int(Int64(counts.stored)), "dropped": .int(Int64(counts.dropped)), "faults": .int(Int64(counts.faults)),
        ])
    }

    private func requests(_ request: ReceivedRequest) throws(GatewayError) -> HTTPResponse {
        var provider: GatewayProvider?
        var token: String?
        var after = 0
        for (name, value) in request.query {
            switch name {
            case "provider": provider = try Self.provider(value)
            case "token": token = value
            case "after":
                guard let number = Int(value) else { throw GatewayError("\"after\" is the sequence of a record, a number") }
                after = number
            default: throw GatewayError("unknown parameter \"\(name)\"; known are provider, token, after")
            }
        }
        let found = ledger.requests {
            (provider == nil || $0.provider == provider) && (token == nil || $0.token == token) && $0.sequence > after
        }
        var response = HTTPResponse.json(.array(found.map(\.description)))
        response.headers.append(("X-Dropped-Requests", String(ledger.counts.dropped)))
        return response
    }

    private func setFaults(_ request: ReceivedRequest, token: String) throws(GatewayError) {
        guard !token.isEmpty, token.utf8.count <= SimulatorLimits.tokenBytesMax else {
            throw GatewayError("name a token of 1 to \(SimulatorLimits.tokenBytesMax) bytes, or * for every token")
        }
        let json = try body(of: request)
        let values = json.arrayValue ?? [json]
        var faults: [GatewayFault] = []
        for value in values { faults.append(try GatewayFault(json: value)) }
        var provider: GatewayProvider? = token == GatewayProvider.oauth.rawValue ? .oauth : nil
        for (name, value) in request.query {
            guard name == "provider" else { throw GatewayError("unknown parameter \"\(name)\"; known is provider") }
            provider = try Self.provider(value)
        }
        try ledger.setFaults(faults, token: token, provider: provider)
    }

    private func changeSettings(_ request: ReceivedRequest) throws(GatewayError) {
        let json = try body(of: request)
        guard let members = json.objectValue, Array(members.keys) == ["apns_streams_max"],
            let number = members["apns_streams_max"]?.intValue, (1...Int64(SimulatorLimits.streamsMax)).contains(number)
        else { throw GatewayError("the settings are {\"apns_streams_max\": 1 to \(SimulatorLimits.streamsMax)}") }
        streamLimit.afterSuccess = Int(number)
        for door in doors[.apns] ?? [] { door.send(.announce(streamsMax: Int(number))) }
    }

    private func body(of request: ReceivedRequest) throws(GatewayError) -> JSONValue {
        guard request.body.count == request.bodyBytes else {
            throw GatewayError("the body is larger than \(SimulatorLimits.bodyBytesKept) bytes")
        }
        do {
            return try JSONValue(parsing: request.body)
        } catch {
            throw GatewayError("the body is no JSON: \(error)")
        }
    }

    private func chosenDoors(_ request: ReceivedRequest) throws(GatewayError) -> [ServerDoor] {
        guard let value = request.query.first(where: { $0.name == "provider" })?.value else { return doors.values.flatMap(\.self) }
        let provider = try Self.provider(value)
        return doors[provider] ?? []
    }

    private static func provider(_ text: String) throws(GatewayError) -> GatewayProvider {
        guard let provider = GatewayProvider(rawValue: text) else { throw GatewayError("\"provider\" is apns, fcm or oauth") }
        return provider
    }
}
