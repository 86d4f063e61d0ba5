/// The answer to a publish that carried an `Idempotency-Key`, kept so that the same request gets it again.
package struct AnswerRecord: Sendable, Equatable {
    package var app: String
    /// Unique in its app.
    package var key: String
    /// SHA-256 of what was asked: under one key there is one request.
    package var requestDigest: [UInt8]
    package var status: Int
    package var contentType: String
    /// As it was sent, byte for byte.
    package var body: [UInt8]
    /// Milliseconds since 1970.
    package var answeredAt: Int64

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

    /// How long a key is remembered, in milliseconds: a day. Longer than any caller keeps trying, and short enough for keys
    /// that are made of an order's number or a date to be used again.
    package static let lifeMilliseconds: Int64 = 24 * 60 * 60 * 1000
    /// Answers kept at the same time, of all apps: with the usual short ones about 300 MB. Beyond it the oldest are forgotten
    /// before their time, which the log says, because refusing to publish would be worse.
    package static let keptMax = 1_000_000
}
