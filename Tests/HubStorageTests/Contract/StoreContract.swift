import HubCore
import HubDefinitions
import HubDelivery
import Testing

/// A rule that every store must follow. A store's own tests run each rule on a fresh, empty store.
struct StoreContract: Sendable, CustomTestStringConvertible {
    typealias Store = any PeopleStore & DeliveryStore & WebhookStore

    let name: String
    let check: @Sendable (Store) async throws -> Void

    init(_ name: String, _ check: @escaping @Sendable (Store) async throws -> Void) {
        self.name = name
        self.check = check
    }

    var testDescription: String { name }

    static let all =
        sessions + participants + joins + devices + deliveries + clears + fanouts + history + trails + scheduled + receipts + answers
        + deadLetters + webhooks + concurrency
}

extension PeopleStore {
    /// A session that rules can fill.
    func makeSession(_ id: String = "game-7", app: String = "1", joinCode: String? = nil) async throws -> Session {
        try await putSession(app: app, id: id, definition: "hide-and-seek", joinCode: joinCode, attributes: [:])
    }

    func join(_ session: Session, _ email: String, name: String = "Ada") async throws -> Participant {
        try await join(session: session, name: name, email: email, role: nil, identity: .email, installation: nil, membersMax: 10_000)
    }

    func join(_ session: Session, device: String?, email: String = "", name: String = "Ada") async throws -> Participant {
        try await join(
            session: session, name: name, email: email, role: "hider", identity: .device, installation: device, membersMax: 10_000)
    }
}
