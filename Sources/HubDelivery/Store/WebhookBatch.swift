/// One request to an endpoint: built and signed once, then stored and sent unchanged on every attempt.
package struct WebhookBatch: Sendable, Equatable {
    /// The app's id.
    package var app: String
    /// Address of the endpoint.
    package var url: String
    /// The header `X-Pusher-Key`.
    package var key: String
    /// The header `X-Pusher-Signature`: HMAC-SHA256 of `body` in lower-case hexadecimal.
    package var signature: String
    /// Time of creation, as in the body: milliseconds since 1970.
    package var timeMilliseconds: Int64
    /// Body as sent, byte for byte.
    package var body: [UInt8]

    /// A request that is already signed.
    package init(app: String, url: String, key: String, signature: String, timeMilliseconds: Int64, body: [UInt8]) {
        self.app = app
        self.url = url
        self.key = key
        self.signature = signature
        self.timeMilliseconds = timeMilliseconds
        self.body = body
    }
}
