internal import HubCrypto
package import HubDelivery
package import PusherProtocol

/// An address of an app that receives its channels' events.
///
/// No description of the endpoint contains the secret.
package struct WebhookEndpoint: Sendable, CustomStringConvertible, CustomReflectable {
    /// Index of the app, as in `ChannelFact`.
    package let app: Int
    /// The app's id.
    package let appID: String
    /// The app's oldest key, which signs the requests.
    package let key: String
    private let secret: String
    /// `http://` or `https://`.
    package let url: String
    /// Kinds of facts that the endpoint receives.
    package let kinds: ChannelFact.Kinds

    /// - Parameters:
    ///   - app: the app's index, as in `ChannelFact`.
    ///   - appID: the app's id.
    ///   - url: begins with `http://` or `https://`.
    package init(app: Int, appID: String, key: String, secret: String, url: String, kinds: ChannelFact.Kinds) {
        self.app = app
        self.appID = appID
        self.key = key
        self.secret = secret
        self.url = url
        self.kinds = kinds
    }

    package var description: String { "webhook of app \(appID)" }
    package var customMirror: Mirror { Mirror(self, children: ["app": appID]) }

    /// The signed request.
    /// - Parameter events: objects separated by commas.
    package func batch(timeMilliseconds: Int64, events: [UInt8]) -> WebhookBatch {
        let body = WebhookText.body(timeMilliseconds: timeMilliseconds, events: events)
        return WebhookBatch(
            app: appID, url: url, key: key, signature: Hex.encode(HMAC.sha256(key: Array(secret.utf8), message: body)),
            timeMilliseconds: timeMilliseconds, body: body)
    }
}

extension ChannelFact.Kinds {
    /// The kinds that must be reported for these. An addition cancels the removal before it, even if the endpoint receives no additions.
    package var withCounterparts: ChannelFact.Kinds {
        var kinds = self
        if contains(.vacated) || contains(.occupied) { kinds.formUnion([.vacated, .occupied]) }
        if contains(.memberRemoved) || contains(.memberAdded) { kinds.formUnion([.memberRemoved, .memberAdded]) }
        return kinds
    }
}
