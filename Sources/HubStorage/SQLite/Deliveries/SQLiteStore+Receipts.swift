import Foundation
import GRDB
package import HubDelivery

extension SQLiteStore {
    /// Maximum of events that one look-up by a notification's id tries: of the user's own, and of those with a long list.
    static let receiptCandidatesMax = 1_000

    /// `ReceiptStore.receiptTarget`: one look-up, and one in the event's list.
    package func receiptTarget(event: String, app: String, user: String) async throws -> ReceiptTarget? {
        try await reading { db, lists in
            let row = try Row.fetchOne(
                db.cachedStatement(
                    sql: "SELECT snapshot, event.* FROM event JOIN fanout ON fanout.event = event.id WHERE event.id = ? AND event.app = ?"),
                arguments: [event, app])
            guard let row, let place = try lists.list(row["snapshot"])?.place(of: user), let event = lists.event(row) else { return nil }
            return ReceiptTarget(event: event, recipient: place)
        }
    }

    /// Tries the user's newest events until one yields the id, because an id does not name its event. An index of ids would cost every
    /// delivery a scattered write.
    package func eventID(nid: String, app: String, user: String) async throws -> String? {
        try await read { db in
            func find(_ sql: String, _ arguments: StatementArguments) throws -> String? {
                let events = try String.fetchCursor(db.cachedStatement(sql: sql), arguments: arguments)
                while let event = try events.next() {
                    if NotificationID.make(event: event, app: app, user: user) == nid { return event }
                }
                return nil
            }
            return try find(Self.newestOwnEventsSQL, [user, app, Self.receiptCandidatesMax])
                ?? find(Self.newestLargeEventsSQL, [app, Self.receiptCandidatesMax])
        }
    }

    static var newestOwnEventsSQL: String {
        """
        SELECT fanout.event FROM snapshot_user JOIN fanout ON fanout.snapshot = snapshot_user.snapshot
        WHERE snapshot_user.user = ? AND fanout.app = ? ORDER BY fanout.number DESC LIMIT ?
        """
    }

    static var newestLargeEventsSQL: String {
        "SELECT event FROM fanout WHERE app = ? AND is_large = 1 ORDER BY number DESC LIMIT ?"
    }
}
