internal import HubDelivery

/// Names a push: one notification on one device.
struct PushName: Hashable, Sendable {
    let nid: String
    let device: String

    init(_ push: PushRecord) { (nid, device) = (push.nid, push.device) }

    init(_ push: OpenPush) { (nid, device) = (push.nid, push.device) }
}
