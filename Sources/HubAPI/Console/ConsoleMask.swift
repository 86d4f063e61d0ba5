internal import HubCore
internal import HubJSON

/// Cuts what no screen shows whole out of answers: e-mails, join codes, tokens and secrets.
enum ConsoleMask {
    /// First components of paths whose answers can hold such members.
    static let rooms: Set<String> = ["sessions", "users", "devices", "search"]

    /// The answer with cut members. One that is no JSON is left as it is.
    static func cut(_ response: HTTPResponse) -> HTTPResponse {
        guard let value = try? JSONValue(parsing: response.body) else { return response }
        var response = response
        response.body = cut(value).serialized()
        return response
    }

    private static func cut(_ value: JSONValue) -> JSONValue {
        switch value {
        case .array(let elements): .array(elements.map(cut))
        case .object(let members):
            .object(Dictionary(uniqueKeysWithValues: members.map { ($0.key, member($0.key, $0.value)) }))
        default: value
        }
    }

    private static func member(_ name: String, _ value: JSONValue) -> JSONValue {
        switch (name, value) {
        case ("email", .string(let email)): .string(address(email))
        case ("join_code", .string(let text)), ("token", .string(let text)), ("secret", .string(let text)): .string(start(of: text, 2))
        default: cut(value)
        }
    }

    /// `u…@example.com`
    static func address(_ email: String) -> String {
        guard let at = email.lastIndex(of: "@") else { return start(of: email, 1) }
        return start(of: String(email[..<at]), 1) + email[at...]
    }

    private static func start(of text: String, _ count: Int) -> String {
        text.hasSuffix("…") ? text : text.unicodeScalars.count <= count ? "…" : text.quotable(count) + "…"
    }
}
