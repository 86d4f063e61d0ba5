internal import HubCore
internal import HubDefinitions
internal import HubDelivery

/// `/apps/{app}/dead-letters`: lists, shows, resends and dismisses failed pushes. Devices appear by id. A push's text and data appear
/// only in the answer for a single push; its reader holds the app's secret.
struct DeadLettersResource: Sendable {
    let store: any DeliveryStore
    let pushes: any PushQueue
    let time: any TimeSource

    /// Dead letters per page.
    static let pageMax = 1_000
    static let pageUsual = 100
    static let reasonCharactersMax = 200

    func respondToList(_ request: HTTPRequest, app: String) async throws -> HTTPResponse {
        switch request.method {
        case "GET": return try await list(request, app: app)
        case "DELETE":
            let selection = DeadLetterSelection.failed(
                reason: try Self.reason(request.parameter("reason")), before: try before(request.parameter("before")))
            let count = try await store.dismissDeadLetters(selection, app: app)
            return .json(["dismissed": .int(Int64(count)), "more": .bool(count == DeadLetter.stepMax)])
        default: throw APIError.methodNotAllowed(request.method, allowed: ["GET", "DELETE", "HEAD"])
        }
    }

    private func list(_ request: HTTPRequest, app: String) async throws -> HTTPResponse {
        let limit = try PageQuery(request: request).limit(max: Self.pageMax, otherwise: Self.pageUsual)
        let found = try await store.deadLetters(
            app: app, reason: try Self.reason(request.parameter("reason")), after: try Self.place(request.parameter("after")),
            limit: limit + 1)
        assert(found.count <= limit + 1, "the store found \(found.count) dead letters, at most \(limit + 1) were asked for")
        let page = found.prefix(limit)
        let next = found.count > limit ? page.last.map { JSONValue.string("\($0.place.failedAt)_\($0.place.row)") } : nil
        return .json(["dead_letters": .array(page.map { .object(Self.members($0)) }), "next": next ?? .null])
    }

    func respond(to request: HTTPRequest, app: String, nid: String, device: String) async throws -> HTTPResponse {
        switch request.method {
        case "GET":
            guard let letter = try await store.deadLetter(app: app, nid: nid.lowercased(), device: device) else {
                throw Self.nothing(nid, device)
            }
            var members = Self.members(letter)
            members["answers"] = .array(letter.attempts.map(RecipientRow.attempt))
            members["message"] = letter.delivery.message.map(Self.message) ?? .null
            return .json(.object(members))
        case "DELETE":
            guard try await store.dismissDeadLetter(app: app, nid: nid.lowercased(), device: device) else {
                throw Self.nothing(nid, device)
            }
            return .json([:])
        default: throw APIError.methodNotAllowed(request.method, allowed: ["GET", "DELETE", "HEAD"])
        }
    }

    private static func nothing(_ nid: String, _ device: String) -> APIError {
        APIError(
            404,
            "\(APIError.quoted(nid)) on the device \(APIError.quoted(device)) is no dead letter: it was sent again, dismissed, or forgotten after 30 days"
        )
    }

    /// `POST /apps/{app}/dead-letters/replay`: sends pushes to the gateways again, as if for the first time.
    func replay(_ request: HTTPRequest, app: String) async throws -> HTTPResponse {
        guard request.method == "POST" else { throw APIError.methodNotAllowed(request.method, allowed: ["POST"]) }
        let body = try JSONBody(request.body)
        let unknown = body.unknown(beside: ["nids", "reason", "before", "ttl"])
        guard unknown.isEmpty else {
            throw APIError(400, "\(APIError.quoted(unknown[0])) is unknown: send nids, or reason and before, and ttl for what has expired")
        }
        let nids = try Self.nids(body)
        let reason = try Self.reason(body.string("reason", charactersMax: Self.reasonCharactersMax))
        let before = try before(body.string("before", charactersMax: Self.reasonCharactersMax))
        guard (nids == nil) != (reason == nil && before == nil) else {
            throw APIError(400, "send either nids, or reason or before or both: what is to be sent again")
        }
        let selection = nids.map { DeadLetterSelection.nids($0) } ?? .failed(reason: reason, before: before)
        let now = time.wallMilliseconds
        let replay = try await store.replayDeadLetters(selection, app: app, now: now, ttl: try TimeToLive.milliseconds(body))
        await pushes.enqueue(replay.due)
        let known = Set((replay.due + replay.expired).map(\.nid))
        let expired = replay.expired.map { delivery -> JSONValue in
            ["nid": .string(delivery.nid), "device": .string(delivery.device), "error": "expired: send ttl to give it more time"]
        }
        let missing = (nids ?? []).filter { !known.contains($0) }.map { nid -> JSONValue in
            ["nid": .string(nid), "device": .null, "error": "no dead letter: sent again, dismissed or forgotten already"]
        }
        return .json([
            "replayed": .int(Int64(replay.due.count)), "refused": .array(expired + missing),
            "more": .bool(nids == nil && replay.due.count == DeadLetter.stepMax),
        ])
    }

    private static func nids(_ body: JSONBody) throws(APIError) -> [String]? {
        guard let elements = try body.array("nids") else { return nil }
        let texts = elements.compactMap { $0.stringValue?.lowercased() }
        guard texts.count == elements.count, (1...DeadLetter.stepMax).contains(texts.count) else {
            throw APIError(400, "nids must be an array of 1 to \(DeadLetter.stepMax) strings")
        }
        var seen: Set<String> = []
        return texts.filter { seen.insert($0).inserted }
    }

    private static func reason(_ text: String?) throws(APIError) -> String? {
        guard let text else { return nil }
        guard (1...reasonCharactersMax).contains(text.unicodeScalars.count) else {
            throw APIError(400, "reason has 1 to \(reasonCharactersMax) characters: send one as the list shows it, such as UNREGISTERED")
        }
        return text
    }

    /// Milliseconds since 1970.
    private func before(_ text: String?) throws(APIError) -> Int64? {
        guard let text else { return nil }
        guard let time = Timestamp.milliseconds(iso8601: text) else {
            throw APIError(400, "before is not a time: send one such as 2026-01-09T01:00:00Z")
        }
        return time
    }

    private static func place(_ text: String?) throws(APIError) -> DeadLetter.Place? {
        guard let text else { return nil }
        let parts = text.split(separator: "_").map { Int64($0) }
        guard parts.count == 2, let failedAt = parts[0], let row = parts[1] else {
            throw APIError(400, "after must be the next of an answer before")
        }
        return DeadLetter.Place(failedAt: failedAt, row: row)
    }

    private static func members(_ letter: DeadLetter) -> [String: JSONValue] {
        let delivery = letter.delivery
        return [
            "nid": .string(delivery.nid), "event_id": .string(delivery.event), "user": .string(delivery.user),
            "device": .string(delivery.device), "provider": JSONValue(orNull: letter.provider?.rawValue),
            "reason": JSONValue(orNull: delivery.outcome), "attempts": .int(Int64(delivery.attempts)),
            "failed_at": .string(Timestamp.iso8601(milliseconds: letter.place.failedAt)),
        ]
    }

    private static func message(_ message: PushMessage) -> JSONValue {
        [
            "kind": .string(message.kind.rawValue), "policy": .string(message.policy.rawValue), "title": JSONValue(orNull: message.title),
            "body": JSONValue(orNull: message.body), "image": JSONValue(orNull: message.image), "data": .object(message.data),
            "apns": .object(message.apns), "android": .object(message.android), "webpush": .object(message.webpush),
            "fcm_options": .object(message.fcmOptions), "group": JSONValue(orNull: message.group),
            "expires_at": .string(Timestamp.iso8601(milliseconds: message.expiresAt)),
        ]
    }
}
