import HubDefinitions
import HubDelivery

/// The values of a fan-out's row, encoded on the caller's thread.
struct RecipientColumns: Sendable {
    let snapshot: RecipientSnapshot
    let isOpen: Bool
    let pushed: PlaceSet
    let notes: [UInt8]

    /// Longest list whose users `snapshot_user` names one by one: bounds the rows of the list's first commit.
    static let smallUsersMax = 64

    /// Nil if there are no recipients.
    init?(_ opening: RecipientOpening) {
        guard !opening.notes.isEmpty else { return nil }
        assert(opening.notes.count <= RecipientBits.countMax, "an event with \(opening.notes.count) recipients would be read as damaged")
        snapshot = opening.snapshot
        isOpen = opening.notes.contains { $0.choice == .awaited }
        var places = PlaceSet(count: opening.notes.count)
        for (place, note) in opening.notes.enumerated() where note.choice == .pushed { places.insert(place) }
        pushed = places
        notes = NoteCoding.encode(opening.notes)
    }

    static func isLarge(_ snapshot: RecipientSnapshot) -> Bool { snapshot.users.count > smallUsersMax }
    var isLarge: Bool { Self.isLarge(snapshot) }
}
