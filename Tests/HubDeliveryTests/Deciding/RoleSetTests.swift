import HubCore
import HubDefinitions
import HubYAML
import Testing

@testable import HubDelivery

/// Loops tell roles apart by the bits of a number; definitions name them.
@Suite("Roles as bits")
struct RoleSetTests {
    private func definition(roles: Int) throws -> ChannelDefinition {
        let names = (0..<roles).map { "r\($0)" }.joined(separator: ", ")
        let text = "channel: presence-g-{session}\nroles: [\(names)]\nevents: { e: { to: all, policy: realtime_only } }\n"
        return try #require(try DefinitionSet.load([("g.yaml", text)]).definition(named: "g"))
    }

    @Test("as many roles as a definition may have are told apart, also from nobody's")
    func bits() throws {
        let definition = try definition(roles: 31)
        let sets = definition.roles.map { RoleSet(role: $0, in: definition) }
        #expect(Set(sets.map(\.rawValue)).count == 31)
        #expect(sets.allSatisfy { !$0.isEmpty && $0.isDisjoint(with: .unmatched) })
    }

    @Test("one more is a mistake in the file")
    func tooMany() {
        let error = #expect(throws: YAMLError.self) { _ = try definition(roles: 32) }
        #expect(error?.mistakes.map(\.message) == ["roles has 32 elements; there may be at most 31"])
    }
}
