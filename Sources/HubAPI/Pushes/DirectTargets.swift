internal import HubCore
internal import HubDelivery

/// The member `to` of a direct send, in exactly one of four forms.
enum DirectTargets {
    /// Without duplicates, in the order of the request.
    case users([String])
    /// Each with a name in place of a device's.
    case addresses([(name: String, address: DirectAddress)])

    static let usersMax = 10_000
    static let tokensMax = 1_000
    private static let forms = ["users", "tokens", "topic", "condition"]
    private static let formsText = "send exactly one of users, tokens, topic and condition in to"

    /// - Parameter environment: of APNs tokens without an environment.
    init(_ body: JSONBody, environment: APNsEnvironment) throws(APIError) {
        guard let members = try body.object("to") else { throw APIError(400, "to is missing: \(Self.formsText)") }
        let to = try JSONBody(.object(members), named: "to")
        guard to.unknown(beside: Set(Self.forms)).isEmpty else {
            throw APIError(400, "to.\(to.unknown(beside: Set(Self.forms))[0].quotable(64)) is unknown: \(Self.formsText)")
        }
        let given = Self.forms.filter { to[$0] != nil }
        guard given.count == 1 else {
            throw APIError(
                400, given.isEmpty ? "to is empty: \(Self.formsText)" : "to has \(given.joined(separator: " and ")): \(Self.formsText)")
        }
        switch given[0] {
        case "users": self = .users(try Self.users(to))
        case "tokens": self = .addresses(try Self.tokens(to, environment))
        case "topic":
            let topic = try to.requiredString("topic", charactersMax: TopicText.charactersMax)
            guard TopicText.isTopic(topic) else {
                throw APIError(
                    400, "to.topic has 1 to \(TopicText.charactersMax) characters out of a-z A-Z 0-9 - _ . ~ %, without /topics/ in front")
            }
            self = .addresses([("topic", Self.fcm(.topic, topic))])
        default:
            let condition = try to.requiredString("condition", charactersMax: TopicText.conditionCharactersMax)
            guard TopicText.isCondition(condition) else {
                throw APIError(
                    400,
                    "to.condition is no expression over 1 to \(TopicText.conditionTopicsMax) topics: send one such as 'news' in topics && !('sport' in topics)"
                )
            }
            self = .addresses([("condition", Self.fcm(.condition, condition))])
        }
    }

    private static func users(_ to: JSONBody) throws(APIError) -> [String] {
        let elements = try to.array("users") ?? []
        guard (1...usersMax).contains(elements.count) else {
            throw APIError(elements.isEmpty ? 400 : 413, "to.users has \(elements.count) elements: send 1 to \(usersMax) user ids")
        }
        var seen: Set<String> = []
        var users: [String] = []
        for element in elements {
            guard let text = element.stringValue else { throw APIError(400, "an element of to.users is not a string") }
            let user = try Field.userID(text)
            if seen.insert(user).inserted { users.append(user) }
        }
        return users
    }

    private static func tokens(_ to: JSONBody, _ environment: APNsEnvironment) throws(APIError) -> [(name: String, address: DirectAddress)]
    {
        let elements = try to.array("tokens") ?? []
        guard (1...tokensMax).contains(elements.count) else {
            throw APIError(elements.isEmpty ? 400 : 413, "to.tokens has \(elements.count) elements: send 1 to \(tokensMax) tokens")
        }
        struct Token: Hashable {
            let provider: PushProvider
            let text: String
        }
        var seen: Set<Token> = []
        var addresses: [(name: String, address: DirectAddress)] = []
        for (index, element) in elements.enumerated() {
            let address = try address(element, environment)
            guard seen.insert(Token(provider: address.provider, text: address.text)).inserted else { continue }
            addresses.append(("token-\(index + 1)", address))
        }
        return addresses
    }

    /// Read like a device's registration, so that a token reaches the same gateway either way.
    private static func address(_ element: JSONValue, _ environment: APNsEnvironment) throws(APIError) -> DirectAddress {
        let value: JSONValue = element.stringValue.map { ["token": .string($0)] } ?? element
        let body = try JSONBody(value, named: "an element of to.tokens")
        let device = try DeviceRegistration(body).device(
            of: DeviceRegistration.Owner(app: "", user: "", device: ""), former: nil, environment: environment, now: 0)
        guard let text = device.token else { throw APIError(400, "an element of to.tokens has neither token nor fid: send one of them") }
        return DirectAddress(
            provider: device.provider, platform: device.platform, environment: device.environment, form: device.form, text: text)
    }

    private static func fcm(_ form: TargetForm, _ text: String) -> DirectAddress {
        DirectAddress(provider: .fcm, platform: .android, environment: .production, form: form, text: text)
    }
}
