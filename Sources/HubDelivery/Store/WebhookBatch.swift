/// One request to an endpoint: built and signed once, sent and stored as it is, however often it is tried.
package struct WebhookBatch: Sendable, Equatable {
    /// The app's id.
    package var app: String
    package var url: String
    /// What `X-Pusher-Key` says.
    package var key: String
    /// HMAC-SHA256 of `body` in lower-case hexadecimal: what `X-Pusher-Signature` says.
    package var signature: String
    /// When the batch was made, as the body says it: since 1970.
    package var timeMilliseconds: Int64
    package var body: [UInt8]

    package init(app: String, url: String, key: String, signature: String, timeMilliseconds: Int64, body: [UInt8]) {
        self.app = app
        self.url = url
        self.key = key
        self.signature = signature
        self.timeMilliseconds = timeMilliseconds
        self.body = body
    }
}
