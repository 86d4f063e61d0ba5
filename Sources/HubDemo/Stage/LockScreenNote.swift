package import HubCore

/// A notification that a gateway took for a phone.
package struct LockScreenNote: Equatable, Sendable {
    package let nid: String
    /// The question's number.
    package let number: Int
    package let title: String
    package let body: String
    /// When the gateway took it, in milliseconds since 1970.
    package let acceptedAt: Int64
    /// When the phone showed it; nil while the phone has no network, and the gateway keeps it.
    package internal(set) var shownAt: Int64?
}

/// One request that a simulated gateway took, as far as the demo reads it.
package enum GatewayNews: Equatable, Sendable {
    /// A visible notification.
    case note(LockScreenNote)
    /// The hub takes the notification with this id back.
    case clear(nid: String)

    /// Nil for anything else.
    /// - Parameters:
    ///   - body: of FCM's or APNs' request.
    ///   - at: when it arrived, in milliseconds since 1970.
    package init?(body: JSONValue, at: Int64) {
        let message = body["message"]
        let data = message?["data"] ?? body
        if data["type"]?.stringValue == "clear", let nid = data["clear"]?.stringValue {
            self = .clear(nid: nid)
            return
        }
        guard let texts = message?["notification"] ?? body["aps"]?["alert"], let nid = data["nid"]?.stringValue,
            let number = data["number"].flatMap({ $0.intValue.map(Int.init) ?? $0.stringValue.flatMap { Int($0) } })
        else { return nil }
        self = .note(
            LockScreenNote(
                nid: nid, number: number, title: texts["title"]?.stringValue ?? "", body: texts["body"]?.stringValue ?? "", acceptedAt: at,
                shownAt: nil))
    }
}
