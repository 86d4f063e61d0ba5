/// The answer to a publish with an `Idempotency-Key`, kept so that the same request gets it again.
package struct AnswerRecord: Sendable, Equatable {
    /// Id of the app.
    package var app: String
    /// Key of the request, unique in its app.
    package var key: String
    /// SHA-256 of the request: one key stands for one request.
    package var requestDigest: [UInt8]
    /// HTTP status.
    package var status: Int
    /// Media type of the body.
    package var contentType: String
    /// Body as sent, byte for byte.
    package var body: [UInt8]
    /// Time of the answer, in milliseconds since 1970.
    package var answeredAt: Int64

    /// An answer in JSON unless given.
    package init(
        app: String, key: String, requestDigest: [UInt8], status: Int, contentType: String = "application/json", body: [UInt8],
        answeredAt: Int64
    ) {
        self.app = app
        self.key = key
        self.requestDigest = requestDigest
        self.status = status
        self.contentType = contentType
        self.body = body
        self.answeredAt = answeredAt
    }

    /// Milliseconds for which a key is remembered: a day. Longer than any caller keeps trying, and short enough to use keys made of an
    /// order's number or a date again.
    package static let lifeMilliseconds: Int64 = 24 * 60 * 60 * 1000
    /// Most answers that are kept, of all apps: about 300 MB of the usual short ones. If exceeded, the oldest are dropped early, which the
    /// log says, because refusing to publish would be worse.
    package static let keptMax = 1_000_000
}
