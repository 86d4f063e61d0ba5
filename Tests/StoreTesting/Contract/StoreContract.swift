import HubCore
import HubDefinitions
import HubDelivery
import Testing

/// A rule that every store must follow. A store's own tests run each rule on a fresh, empty store.
package struct StoreContract: Sendable, CustomTestStringConvertible {
    package typealias Store = any PeopleStore & DeliveryStore & WebhookStore & AppStore

    package let name: String
    package let check: @Sendable (Store) async throws -> Void

    init(_ name: String, _ check: @escaping @Sendable (Store) async throws -> Void) {
        self.name = name
        self.check = check
    }

    package var testDescription: String { name }

    package static let all = Array(
        [
            apps, sessions, participants, joins, devices, deliveries, clears, fanouts, history, trails, outcomes, search, scheduled,
            receipts, answers, deadLetters, webhooks, concurrency,
        ].joined())

    /// Milliseconds of a day. A store may remove whole days only, so what is pruned and what stays lie at least three days apart.
    static let day: Int64 = 86_400_000
}

extension DeliveryStore {
    /// Prunes until nothing is left to remove.
    func pruneAll(before cutoff: Int64) async throws {
        while try await prune(before: cutoff, limit: 100) > 0 {}
    }
}

extension PeopleStore {
    /// A session that rules can fill.
    package func makeSession(_ id: String = "game-7", app: String = "1", joinCode: String? = nil) async throws -> Session {
        try await putSession(app: app, id: id, definition: "hide-and-seek", joinCode: joinCode, attributes: [:])
    }

    package func join(_ session: Session, _ email: String, name: String = "Ada") async throws -> Participant {
        try await join(session: session, name: name, email: email, role: nil, identity: .email, installation: nil, membersMax: 10_000)
    }

    package func join(_ session: Session, device: String?, email: String = "", name: String = "Ada") async throws -> Participant {
        try await join(
            session: session, name: name, email: email, role: "hider", identity: .device, installation: device, membersMax: 10_000)
    }
}
