internal import HubChannels
internal import HubCore
internal import HubDelivery

/// Who sent a request with a participant token.
struct Bearer {
    var app: App
    var participant: Participant
    /// The device that the token was issued to.
    var device: String
    var scope: ParticipantScope

    var deviceOwner: DeviceRegistration.Owner {
        DeviceRegistration.Owner(app: app.id, user: participant.user, device: device)
    }

    private static let scheme = "bearer"

    /// What the `Authorization` header holds. The scheme's name counts in any case (RFC 9110, 11.1).
    static func token(of request: HTTPRequest) -> String? {
        guard let parts = request.headers["authorization"]?.split(separator: " ", maxSplits: 1), parts.count == 2,
            parts[0].lowercased() == scheme
        else { return nil }
        let token = parts[1].drop { $0 == " " }
        return token.isEmpty ? nil : String(token)
    }
}

/// From the `Authorization` header to the participant.
struct BearerCheck: Sendable {
    let apps: AppDirectory
    let directory: any Directory
    let time: any TimeSource

    /// - Throws: a 401 for a token that is missing, not good, or of a participant who was removed since; a 403 when the app is
    ///   disabled.
    func bearer(of request: HTTPRequest) async throws -> Bearer {
        guard let token = Bearer.token(of: request) else {
            throw APIError.unauthorized("the participant token is missing: send what joining returned as Authorization: Bearer TOKEN")
        }
        let (claims, app) = try verified(token)
        guard app.isEnabled else { throw APIError(403, "the app is disabled") }
        let participant = try await directory.participant(app: app.id, session: claims.session, user: claims.user)
        guard let participant, participant.number == claims.number ?? participant.number else {
            throw APIError.unauthorized("the participant has left the session or was removed: join again")
        }
        // Tokens of earlier versions name the installation by its secret id.
        let device = claims.number == nil ? InstallationID(claims.device)?.handle ?? claims.device : claims.device
        return Bearer(app: app, participant: participant, device: device, scope: claims.scope)
    }

    /// Whether the token speaks for the person and not only in its session. An e-mail and a code are no login: what a join gave
    /// reaches a user id that a join made, while it stands in no other session.
    func reachesPerson(_ bearer: Bearer) async throws -> Bool {
        switch bearer.scope {
        case .app: true
        case .session: false
        case .join:
            if bearer.participant.joinedBy == nil { false } else {
                try await directory.sessionCount(app: bearer.app.id, user: bearer.participant.user) == 1
            }
        }
    }

    /// - Throws: a 403 where the token does not speak for the person.
    func requirePerson(_ bearer: Bearer) async throws {
        guard try await !reachesPerson(bearer) else { return }
        throw APIError(
            403,
            "this participant token reaches its session only: take one of scope app from the backend, which gets it with "
                + "POST /apps/{app}/sessions/{session}/participants/{user}/token")
    }

    private func verified(_ token: String) throws(APIError) -> (claims: ParticipantClaims, app: App) {
        do throws(ParticipantToken.Refusal) {
            return try ParticipantToken.verify(token, apps: apps, nowSeconds: time.wallSeconds)
        } catch {
            throw .unauthorized(error.sentence)
        }
    }
}
