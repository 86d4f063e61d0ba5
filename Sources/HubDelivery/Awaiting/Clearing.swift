internal import HubCore

/// Takes a notification back from a participant's other devices once one of them has confirmed it: a silent push to each device that
/// was sent the notification, upon which the app removes it from the screen.
package enum Clearing {
    /// For the trail.
    package static let reason = "confirmed on another device"

    /// What to send, to be inserted by `escalate`: one to each device at most, and nothing once there was something. The devices that are
    /// pushed to often all confirm what they got, each for itself; only the first word counts, or they would clear one another until the
    /// notification stands nowhere.
    ///
    /// Not sent on is what the receipt has kept from being sent, and what goes out in any case (`both`, `push_only`) unless the receipt is
    /// of the notification itself. Where an attempt is under way it is waited for as long as it may take, so that nothing is taken back
    /// before it is there.
    ///
    /// - Parameters:
    ///   - device: the one that confirmed.
    ///   - deliveries: all rows of one event and one participant, after `receipt` was carried out on them.
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
    /// A receipt of the event does not keep its push away: it is told on the push's surface too, or on that alone.
    fileprivate var goesOutInAnyCase: Bool { self == .both || self == .pushOnly }
}
