/// A recipient of an event, found for a receipt that the app itself sent.
package struct ReceiptTarget: Sendable, Equatable {
    /// The event.
    package var event: EventRecord
    /// Place among the event's recipients.
    package var recipient: Int

    /// A recipient as stored.
    package init(event: EventRecord, recipient: Int) {
        self.event = event
        self.recipient = recipient
    }
}

/// Finds the events of receipts that apps send themselves. Callable from any thread.
package protocol ReceiptStore: Sendable {
    /// The recipient of an event.
    /// - Returns: nil if the app has no such event, or the user is not a recipient of it.
    func receiptTarget(event: String, app: String, user: String) async throws -> ReceiptTarget?
    /// The event of the user's notification with that id. Searches the newest 1,000 of the user's own events, and the newest 1,000 of the
    /// app's large sessions, because an app confirms soon.
    /// - Returns: nil if none of these matches.
    func eventID(nid: String, app: String, user: String) async throws -> String?
}
