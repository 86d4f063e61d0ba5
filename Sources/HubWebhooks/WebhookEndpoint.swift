package import HubChannels
internal import HubCrypto
package import HubDelivery

/// An address that an app wants to have told of its channels.
///
/// The secret is in no description of it.
package struct WebhookEndpoint: Sendable, CustomStringConvertible, CustomReflectable {
    /// Index of the app, as in `ChannelFact`.
    package let app: Int
    /// The app's id.
    package let appID: String
    /// The app's oldest key, which signs.
    package let key: String
    private let secret: String
    /// `http://` or `https://`.
    package let url: String
    /// What it is told of.
    package let kinds: ChannelFact.Kinds

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

    /// The request's final bytes, signed.
    /// - Parameter events: objects with commas between them.
    package func batch(timeMilliseconds: Int64, events: [UInt8]) -> WebhookBatch {
        let body = WebhookText.body(timeMilliseconds: timeMilliseconds, events: events)
        return WebhookBatch(
            app: appID, url: url, key: key, signature: Hex.encode(HMAC.sha256(key: Array(secret.utf8), message: body)),
            timeMilliseconds: timeMilliseconds, body: body)
    }
}

extension ChannelFact.Kinds {
    /// What has to be reported so that these can be told: a removal is called off by the addition that follows, whether or not
    /// anybody is told of additions.
    package var withCounterparts: ChannelFact.Kinds {
        var kinds = self
        if contains(.vacated) || contains(.occupied) { kinds.formUnion([.vacated, .occupied]) }
        if contains(.memberRemoved) || contains(.memberAdded) { kinds.formUnion([.memberRemoved, .memberAdded]) }
        return kinds
    }
}
