package import HubCore
package import HubDefinitions

extension RoleSet {
    /// The bit of a role; `unmatched` for none, or for one that the definition does not know any more.
    package init(role: String?, in definition: ChannelDefinition) {
        self = role.flatMap(definition.roles.firstIndex(of:)).map { .role($0) } ?? .unmatched
    }
}
