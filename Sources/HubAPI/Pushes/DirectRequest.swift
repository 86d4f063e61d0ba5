internal import HubCore
internal import HubDefinitions
internal import HubDelivery

/// The checked body of a direct send.
struct DirectRequest: Sendable {
    let targets: DirectTargets
    let policy: Policy
    let ttlMilliseconds: Int64
    /// Group on the device, whose older notification is replaced.
    let group: String?
    let once: String?
    /// Checked and answered, but neither stored nor sent.
    let isTrial: Bool
    /// Notification and data for `/me/events` and the history.
    let eventData: String
    private let content: NotificationContent

    /// Bytes of JSON of notification, data and platform blocks together: four times the gateways' limit, stored with each push.
    static let contentBytesMax = 16 * 1024
    static let groupCharactersMax = 256
    static let onceCharactersMax = 100
    private static let own = ["to", "policy", "ttl", "group", "once", "validate_only"]

    /// - Parameter environment: of APNs tokens without an environment.
    init(_ bytes: [UInt8], environment: APNsEnvironment) throws(APIError) {
        let body = try JSONBody(bytes)
        targets = try DirectTargets(body, environment: environment)
        let content = try Self.content(body)
        self.content = content
        policy =
            try body.choice("policy", of: [Policy.pushOnly, .notify, .critical, .sync]) ?? (content.isVisible ? .pushOnly : .sync)
        if policy == .sync, content.isVisible {
            throw APIError(400, "policy sync shows nothing, and there is something to show: leave policy out, or the notification")
        }
        ttlMilliseconds = try TimeToLive.milliseconds(body) ?? policy.defaultTTL.milliseconds
        group = try Self.name(body, "group", charactersMax: Self.groupCharactersMax)
        once = try Self.name(body, "once", charactersMax: Self.onceCharactersMax)
        if once != nil, case .addresses = targets {
            throw APIError(400, "once is about users: send to.users, or an Idempotency-Key")
        }
        isTrial = try body.bool("validate_only") ?? false
        eventData = JSONValue.object(body.members(among: ["notification", "data"])).text
    }

    private static func content(_ body: JSONBody) throws(APIError) -> NotificationContent {
        let members = body.members(without: Set(own))
        let bytes = JSONValue.object(members).text.utf8.count
        guard bytes <= contentBytesMax else {
            throw APIError(
                413,
                "the notification has \(bytes) bytes without its targets: at most \(contentBytesMax), and the gateways take 4096 of them")
        }
        do {
            return try NotificationContent(json: members, others: own)
        } catch {
            throw APIError(400, "\(error)")
        }
    }

    private static func name(_ body: JSONBody, _ name: String, charactersMax: Int) throws(APIError) -> String? {
        guard let text = try body.string(name, charactersMax: charactersMax) else { return nil }
        guard !text.isEmpty, !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
            throw APIError(400, "\(name) is empty or has control characters: send 1 to \(charactersMax) characters, or leave it out")
        }
        return text
    }

    func message(nid: String, of event: EventRecord) -> PushMessage {
        content.message(
            nid: nid, event: event.id, policy: policy, group: group, expiresAt: event.expiresAt, committedAt: event.committedAt)
    }
}
