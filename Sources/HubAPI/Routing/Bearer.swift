internal import HubChannels
internal import HubCore
internal import HubDefinitions
internal import HubDelivery
internal import PusherProtocol

/// Sender of a request with a participant token.
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

    /// Token of the `Authorization` header. The scheme's name is case-insensitive (RFC 9110, 11.1).
    static func token(of request: HTTPRequest) -> String? {
        guard let parts = request.headers["authorization"]?.split(separator: " ", maxSplits: 1), parts.count == 2,
            parts[0].lowercased() == scheme
        else { return nil }
        let token = parts[1].drop { $0 == " " }
        return token.isEmpty ? nil : String(token)
    }
}

/// Resolves the `Authorization` header to a participant.
struct BearerCheck: Sendable {
    let apps: AppDirectory
    let directory: any PeopleStore
    let time: any TimeSource

    /// - Throws: a 401 for a missing or invalid token, or a removed participant; a 403 if the app is disabled.
    func bearer(of request: HTTPRequest) async throws -> Bearer {
        guard let token = Bearer.token(of: request) else {
            throw APIError.unauthorized("the participant token is missing: send what joining returned as Authorization: Bearer TOKEN")
        }
        return try await bearer(token: token)
    }

    /// - Throws: as for a request's header.
    func bearer(token: String) async throws -> Bearer {
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

    /// Whether the token represents the person beyond its session. An e-mail and a code are no login. So a token from a join
    /// reaches only a user id that a join made and that belongs to no other session.
    func reachesPerson(_ bearer: Bearer) async throws -> Bool {
        switch bearer.scope {
        case .app: true
        case .session: false
        case .join:
            if bearer.participant.joinedBy == nil {
                false
            } else {
                try await directory.sessionCount(app: bearer.app.id, user: bearer.participant.user) == 1
            }
        }
    }

    /// - Throws: a 403 if the token does not represent the person.
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
