/// Roles as bits: the audience of an event, and the roles of a subscription.
package struct RoleSet: OptionSet, Sendable, Hashable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    package static let everybody = RoleSet(rawValue: .max)
    /// A subscriber without a place on the roster: gets events for everybody, and none for a role.
    package static let unmatched = RoleSet(rawValue: 1 << 31)

    /// The role at this index of its definition's list; below 31.
    package static func role(_ index: Int) -> RoleSet { RoleSet(rawValue: 1 << UInt32(index)) }
}
