internal import HubCore
internal import HubDelivery
internal import PusherProtocol

/// `/operator/apps`: lists, adds, changes and removes apps.
struct AppsResource: Sendable {
    let apps: any AppPort

    /// Seconds for which former keys stay valid, unless the request says otherwise: longer than a participant token lives.
    static let keptSecondsUsual: Int64 = 25 * 60 * 60
    static let keptSecondsMax: Int64 = 365 * 24 * 60 * 60

    /// Nil if the path is none of these routes.
    func respond(to request: HTTPRequest, _ path: [String]) async throws -> HTTPResponse? {
        guard path.first == "apps" else { return nil }
        switch (path.count, request.method) {
        case (1, "GET"), (1, "HEAD"): return .json(["apps": .array(try await apps.apps().map(Self.answer))])
        case (1, "POST"): return try await add(request)
        case (1, _): throw APIError.methodNotAllowed(request.method, allowed: ["GET", "HEAD", "POST"])
        case (2, "GET"), (2, "HEAD"):
            guard let app = try await apps.apps().first(where: { $0.app.id == path[1] }) else { throw AppRefusal.noApp(path[1]) }
            return .json(Self.answer(app))
        case (2, "PATCH"): return .json(Self.answer(try await apps.changeApp(id: path[1], settings: settings(JSONBody(request.body)))))
        case (2, "DELETE"): return try await remove(path[1])
        case (2, _): throw APIError.methodNotAllowed(request.method, allowed: ["GET", "HEAD", "PATCH", "DELETE"])
        case (3, "POST") where path[2] == "rotate": return try await rotate(request, id: path[1])
        case (3, _) where path[2] == "rotate": throw APIError.methodNotAllowed(request.method, allowed: ["POST"])
        default: return nil
        }
    }

    private func add(_ request: HTTPRequest) async throws -> HTTPResponse {
        let body = request.body.isEmpty ? nil : try JSONBody(request.body)
        let id = try body?.string("id", charactersMax: 20)
        if let id, id.isEmpty || !id.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            throw APIError(400, "id must be 1 to 20 digits, because the Pusher libraries insist on it")
        }
        let (app, secret) = try await apps.addApp(id: id, settings: body.map { try settings($0, beside: ["id"]) } ?? [:])
        var response = HTTPResponse.json(Self.answer(app, secret: secret))
        response.status = 201
        return response
    }

    private func rotate(_ request: HTTPRequest, id: String) async throws -> HTTPResponse {
        let body = request.body.isEmpty ? nil : try JSONBody(request.body)
        if let unknown = body?.unknown(beside: ["keep_seconds"]).first { throw Self.unknown(unknown, known: ["keep_seconds"]) }
        let given = body?["keep_seconds"]
        let seconds: Int64? =
            switch given {
            case nil: Self.keptSecondsUsual
            case .double(let number)?: Int64(exactly: number)
            case let given?: given.intValue
            }
        guard let seconds, (0...Self.keptSecondsMax).contains(seconds) else {
            throw APIError(400, "keep_seconds must be a whole number from 0 to \(Self.keptSecondsMax)")
        }
        let (app, secret) = try await apps.rotateKey(app: id, keptMilliseconds: seconds * 1000)
        return .json(Self.answer(app, secret: secret))
    }

    private func remove(_ id: String) async throws -> HTTPResponse {
        let (connections, remains) = try await apps.removeApp(id: id)
        return .json([
            "id": .string(id), "connections": .int(Int64(connections)), "sessions": .int(Int64(remains.sessions)),
            "participants": .int(Int64(remains.participants)), "devices": .int(Int64(remains.devices)),
            "scheduled": .int(Int64(remains.scheduled)),
        ])
    }

    private func settings(_ body: JSONBody, beside known: Set<String> = []) throws(APIError) -> [AppSetting: JSONValue] {
        let names = AppSetting.allCases.map(\.rawValue)
        if let unknown = body.unknown(beside: known.union(names)).first { throw Self.unknown(unknown, known: known.sorted() + names) }
        return AppSetting.allCases.reduce(into: [:]) { settings, setting in settings[setting] = body[setting.rawValue] }
    }

    private static func unknown(_ name: String, known: [String]) -> APIError {
        APIError(400, "\(APIError.quoted(name)) is no setting here: use \(known.joined(separator: ", "))")
    }

    private static func answer(_ listing: AppListing) -> JSONValue { answer(listing, secret: nil) }

    /// - Parameter secret: of the first key; shown once.
    private static func answer(_ listing: AppListing, secret: String?) -> JSONValue {
        var members: [String: JSONValue] = [
            "id": .string(listing.app.id), "source": .string(listing.source.rawValue), "in_force": .bool(!listing.isShadowed),
            "connections": .int(Int64(listing.connections)),
            "keys": .array(
                listing.keys.map { key, expiresAt in
                    [
                        "key": .string(key),
                        "expires_at": expiresAt.map { .string(Timestamp.iso8601(milliseconds: $0)) } ?? .null,
                    ]
                }),
        ]
        for setting in AppSetting.allCases { members[setting.rawValue] = setting.value(of: listing.app) }
        if let secret {
            members["key"] = JSONValue(orNull: listing.keys.first?.key)
            members["secret"] = .string(secret)
        }
        return .object(members)
    }
}

extension AppRefusal {
    package static func noApp(_ id: String) -> AppRefusal { AppRefusal(404, "no app has the id \(APIError.quoted(id))") }
}
