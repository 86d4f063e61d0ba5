import HubCore
import HubDefinitions
import HubTesting
import Testing

@testable import HubDelivery

@Suite("An event that changes its owner") struct RecoveredEventTests {
    private static let yaml = """
        channel: private-room-{user}
        events:
          asked: { to: "{user}", policy: notify, ttl: 90s, notification: { title: Asked, body: now } }
        """

    /// Milliseconds for which a new owner waits for the recipient, so long after the commit.
    private func wait(at age: Int64) throws -> Int64? {
        let definitions = try DefinitionSet.load([("room.yaml", Self.yaml)])
        let (definition, placeholders) = try #require(definitions.match(channel: "private-room-u"))
        let event = try #require(definition.events["asked"])
        let record = EventRecord(
            id: "e", app: "1", channel: "private-room-u", name: "asked", data: "{}", policy: .notify, committedAt: ManualClock.start,
            expiresAt: ManualClock.start + 90_000)
        let open = OpenRecipients(
            position: 1, event: record, users: ["u"], notes: [RecipientNote(state: .live, choice: .awaited)],
            confirmed: PlaceSet(count: 1), pushed: PlaceSet(count: 1))
        let audience = EventAudience(
            app: "1", definition: definition, placeholders: placeholders, entries: [.init(user: "u", participant: nil, devices: [])])
        return RecoveredEvent(
            open, event: event, audience: audience, data: .object([:]), rows: [], loopCount: 1, tokenAge: .standard,
            at: Moment(monotonic: 1000, wall: ManualClock.start + age))?.opening.targets.first?.wait
    }

    @Test("waits anew until half of its lifetime, and then for receipts alone, so that it does not expire among changes")
    func waits() throws {
        let whole = try #require(try wait(at: 0))
        #expect(whole > 20_000 && whole <= 45_000)
        #expect(try wait(at: 10_000) == min(whole, 35_000) && wait(at: 30_000) == 15_000)
        for age: Int64 in [40_000, 45_000, 70_000] { #expect(try wait(at: age) == 5_000) }
    }

    @Test("an owner for three of its last eleven seconds lets the push fall due")
    func nearItsEnd() throws {
        #expect(try wait(at: 79_000) == 2_750)
        #expect(try wait(at: 88_000) == 500 && wait(at: 90_000) == 0 && wait(at: 95_000) == 0)
    }
}
