import HubCore
import HubDefinitions
import HubDelivery

/// Definitions of the simulated channels: one per combination of options, with an event per policy, lifetime and audience.
struct SimKind: Hashable {
    var scope = SuppressScope.participant
    var replays = false
    /// The definition's alert limits and the silent budget count.
    var isLimited = false
    /// A night that ends five minutes after the beginning.
    var hasNight = false
    var hasRoles = false

    static let roles = ["red", "blue"]
    static let policies: [Policy] = [.notify, .critical, .sync, .both, .pushOnly, .realtimeOnly]
    /// Seconds that an event is worth telling.
    static let lifetimes = [6, 20, 45, 60, 90, 120]

    var name: String {
        "\(scope.rawValue.prefix(1))\(replays ? 1 : 0)\(isLimited ? 1 : 0)\(hasNight ? 1 : 0)\(hasRoles ? 1 : 0)"
    }

    /// - Parameter session: as in the channel's name.
    func channel(_ session: String) -> String { "presence-\(name)-\(session)" }

    static func event(_ policy: Policy, _ lifetime: Int, role: String?) -> String { "\(policy.rawValue)-\(lifetime)-\(role ?? "all")" }

    /// - Parameter isReversed: the roles have each other's place, and with it each other's bit.
    func yaml(isReversed: Bool) -> String {
        var text = "channel: presence-\(name)-{session}\nsuppress_scope: \(scope.rawValue)\nreplay: \(replays)\n"
        if hasRoles { text += "roles: [\((isReversed ? Self.roles.reversed() : Self.roles).joined(separator: ", "))]\n" }
        if !isLimited { text += "alerts: { burst: 1000, every: 1s }\n" }
        if hasNight { text += "quiet_hours: { from: \"00:00\", to: \"01:05\", timezone: UTC }\n" }
        text += "events:\n"
        for policy in Self.policies {
            for lifetime in Self.lifetimes {
                for role in [nil] + (hasRoles ? Self.roles : []) {
                    text += "  \(Self.event(policy, lifetime, role: role)): { to: \(role ?? "all"), policy: \(policy.rawValue)"
                    if policy != .realtimeOnly { text += ", ttl: \(lifetime)s, group: \"g{{n}}\"" }
                    if policy.pushKind == .alert { text += ", notification: { title: T, body: B }" }
                    text += " }\n"
                }
            }
        }
        return text
    }

    /// The definitions of these kinds.
    static func definitions(_ kinds: Set<SimKind>, isReversed: Bool) -> DefinitionSet {
        let files = kinds.sorted { $0.name < $1.name }.map { ("\($0.name).yaml", $0.yaml(isReversed: isReversed)) }
        do { return try DefinitionSet.load(files) } catch { preconditionFailure("\(error)") }
    }
}
