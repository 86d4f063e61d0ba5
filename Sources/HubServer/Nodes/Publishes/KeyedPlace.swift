internal import HubCore
internal import HubCrypto
internal import HubDelivery
internal import PusherProtocol

/// One channel of one request, published under an idempotency key. Its owner commits a row about it with the event, and the next owner of
/// the channel reads that row. So the event goes out once, whichever nodes fail.
struct KeyedPlace {
    private let app: String
    private let rowKey: String
    /// The request's digest.
    let digest: [UInt8]

    /// - Parameters:
    ///   - request: place of the request among those of the publish.
    ///   - channel: place of the channel in the request.
    init(_ publish: ForwardedPublish, key: String, request: Int, channel: Int) {
        let content = publish.requests[request]
        app = publish.app
        // No sender's key has this character.
        rowKey = "\u{1}\(request) \(channel)\u{1}\(key)"
        let parts = [content.name, content.channels[channel], content.data.content, content.excluded?.description ?? ""]
        digest = Digest.sha256(parts.flatMap { Array("\($0.utf8.count):".utf8) + Array($0.utf8) })
    }

    /// The same for every request under the key.
    var name: String { "\(app) \(rowKey)" }

    /// - Parameter event: its id; nil: it has no policy.
    func record(event: String?, at now: Int64) -> AnswerRecord {
        AnswerRecord(
            app: app, key: rowKey, requestDigest: digest, status: 200, contentType: "", body: Array((event ?? "").utf8), answeredAt: now)
    }

    /// The id of the event that an owner has published here. Nil: none. Nil in it: an event without a policy.
    /// - Throws: `PublishRefusal` if the key stands for another request, and the store's errors.
    func published(_ store: any DeliveryStore, since cutoff: Int64) async throws -> String?? {
        guard let row = try await store.answer(app: app, key: rowKey, since: cutoff) else { return nil }
        guard row.requestDigest == digest else { throw Self.otherRequest }
        return .some(row.body.isEmpty ? nil : String(decoding: row.body, as: UTF8.self))
    }

    private static let otherRequest = PublishRefusal(
        status: 422, sentence: "this idempotency key was used for another request within 24 hours: send a new key")
}
