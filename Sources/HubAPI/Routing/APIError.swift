internal import HubCore
internal import HubDelivery

/// Refusal of a request: a status and a sentence for the sender.
///
/// A sentence may name the sender's own terms (a session, a role). It never contains an e-mail, a device token or a participant token,
/// because proxies and clients log answers.
struct APIError: Error, Equatable {
    var status: Int
    var sentence: String
    var headers: [String: String] = [:]

    init(_ status: Int, _ sentence: String, headers: [String: String] = [:]) {
        self.status = status
        self.sentence = sentence
        self.headers = headers
    }

    /// Answer to a request that failed with `error`. A refusal keeps its own words. A failure of the store becomes a 503 without
    /// details, which can name files and hosts.
    init(answering error: any Error) {
        switch error {
        case let error as APIError: self = error
        case let error as PeopleStoreError: self.init(error)
        default: self.init(503, "the store did not answer: try again in a moment")
        }
    }

    private init(_ error: PeopleStoreError) {
        switch error {
        case .joinCodeTaken(let code):
            self.init(
                409, "the join code \(Self.quoted(code)) belongs to another living session: choose another one or delete that session")
        case .noSuchSession(let id): self = .noSuchSession(id)
        case .emailTaken: self.init(409, "another participant of the session has this e-mail: use that participant or another e-mail")
        case .emailOfBackend:
            self.init(
                403,
                "this e-mail belongs to somebody whom the backend invited: take the participant token from the backend, which gets it with "
                    + "POST /apps/{app}/sessions/{session}/participants/{user}/token")
        case .sessionFull: self.init(403, "the session is full: its definition's members_max bounds how many join")
        case .tooManyDevices:
            self.init(409, "too many devices of this participant: delete one first, with DELETE /me/device or from the backend")
        }
    }

    static func noSuchSession(_ id: String) -> APIError {
        APIError(404, "there is no session \(quoted(id)): create it with PUT /apps/{app}/sessions/{session}")
    }

    /// Missing or invalid token, or a token of a removed participant.
    static func unauthorized(_ sentence: String) -> APIError {
        APIError(401, sentence, headers: ["WWW-Authenticate": "Bearer"])
    }

    static func methodNotAllowed(_ method: String, allowed: [String]) -> APIError {
        let list = allowed.joined(separator: ", ")
        return APIError(405, "\(method) is not possible here: use \(list)", headers: ["Allow": list])
    }

    static func definitionMissing(_ name: String) -> APIError {
        APIError(
            503, "the session's definition \(quoted(name)) is not loaded: put channels/\(name.quotable(quotedCharactersMax)).yaml back")
    }

    var response: HTTPResponse {
        var response = HTTPResponse.error(status, sentence)
        response.headers += headers.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }
        return response
    }

    /// Characters of the sender's own text that an answer repeats.
    private static let quotedCharactersMax = 64

    static func quoted(_ text: String) -> String { "'\(text.quotable(quotedCharactersMax))'" }
}
