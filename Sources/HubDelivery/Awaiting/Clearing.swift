internal import HubCore
internal import HubDefinitions

/// Silent pushes that remove a notification from a participant's other devices once one device has confirmed the event. The app removes the
/// notification when it gets such a push.
package enum Clearing {
    /// Reason of these rows in an event's trail.
    package static let reason = "confirmed on another device"

    /// Rows for `escalate` to insert: at most one per device, and none if the participant already has one.
    ///
    /// Only the first confirmation clears. Devices that often get pushes all confirm, and would otherwise clear one another until no
    /// notification is left.
    ///
    /// No row is made for a push that the receipt stopped. A push of `both` or `push_only` is cleared only by a receipt of the notification
    /// itself. The clearing of a push under way is due when its lease ends, so that no notification is removed before it arrived.
    ///
    /// - Parameters:
    ///   - device: the device that confirmed.
    ///   - deliveries: all rows of one event and one participant, after `receipt` was applied to them.
    ///   - now: milliseconds since 1970.
    package static func deliveries(
        after receipt: PushCancellation, on device: String, among deliveries: [PushRecord], now: Int64
    ) -> [PushRecord] {
        if deliveries.contains(where: { $0.purpose == .clear }) { return [] }
        return deliveries.compactMap { delivery in
            guard delivery.device != device, !delivery.device.isEmpty, delivery.address == nil, let message = delivery.message,
                message.kind == .alert, message.expiresAt > now, receipt.isOfNotification || !message.policy.goesOutInAnyCase
            else { return nil }
            let dueAt: Int64
            switch delivery.state {
            case .accepted: dueAt = now
            case .leased: dueAt = max(now, delivery.dueAt)
            default: return nil
            }
            let nid = NotificationID.clearing(delivery.nid)
            return PushRecord(
                nid: nid, event: delivery.event, app: delivery.app, user: delivery.user, device: delivery.device, purpose: .clear,
                state: .due,
                reason: reason, dueAt: dueAt,
                message: PushMessage(
                    nid: nid, event: delivery.event, kind: .silent, title: nil, body: nil,
                    data: ["type": .string(DeliveryPurpose.clear.rawValue), "clear": .string(delivery.nid)], expiresAt: message.expiresAt,
                    committedAt: message.committedAt, sequence: message.sequence))
        }
    }
}

extension Policy {
    /// Whether the push is sent despite a receipt of the event, because its surface is told as well, or alone.
    fileprivate var goesOutInAnyCase: Bool { self == .both || self == .pushOnly }
}
