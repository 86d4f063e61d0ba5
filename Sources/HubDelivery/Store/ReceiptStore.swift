/// One recipient of one event, found because they say that they got it.
package struct ReceiptTarget: Sendable, Equatable {
    package var event: EventRecord
    /// The user's place among the event's recipients.
    package var recipient: Int

    package init(event: EventRecord, recipient: Int) {
        self.event = event
        self.recipient = recipient
    }
}

/// Finds what a receipt is about that an app sends itself. Callable from any thread.
package protocol ReceiptStore: Sendable {
    /// - Returns: nil when there is no such event in the app, or the user is not a recipient of it.
    func receiptTarget(event: String, app: String, user: String) async throws -> ReceiptTarget?
    /// The event of the user's notification with that id. Looks at the newest 1,000 of the user's own events, and at the newest
    /// 1,000 of the app's large sessions: an app tells at once what it got.
    /// - Returns: nil when none of them is it.
    func eventID(nid: String, app: String, user: String) async throws -> String?
}
