package import HubCore
package import HubDelivery
internal import Synchronization

/// Publishes once per idempotency key. The first request under a key publishes, and requests that arrive meanwhile wait for its answer.
/// Later requests get the stored answer.
///
/// One value serves all loops. Requests without a key never come here.
package final class AnswerBook: Sendable {
    private struct UnderWay {
        let digest: [UInt8]
        var waiting: [LateAnswer] = []
    }

    private enum Admission {
        case first, waits
        case refused(HTTPResponse)
    }

    private let underWay = Mutex<[IdempotencyKey: UnderWay]>([:])
    private let recall: @Sendable (_ app: String, _ key: String, _ since: Int64) async throws -> AnswerRecord?
    private let time: any TimeSource

    /// Keys in progress at the same time, over all apps. If exceeded, the answer is 503.
    static let underWayMax = 10_000
    /// Requests that wait for another request with their key. If exceeded, the answer is 409.
    static let waitingMax = 16

    /// - Parameter recall: the stored answer of a key, unless it is older than `since` (`DeliveryStore.answer`).
    package init(
        time: any TimeSource, recall: @escaping @Sendable (_ app: String, _ key: String, _ since: Int64) async throws -> AnswerRecord?
    ) {
        self.time = time
        self.recall = recall
    }

    /// Passes the key's one answer to `later`. Any thread.
    /// - Parameters:
    ///   - digest: of the request; a different request under the same key is refused.
    ///   - publish: called at most once, from a task; must finish its claim exactly once.
    func once(
        _ key: IdempotencyKey, digest: [UInt8], later: LateAnswer, publish: @escaping @Sendable (AnswerClaim) -> Void
    ) {
        switch admit(key, digest, later) {
        case .first: Task { await self.first(key, digest, later, publish) }
        case .waits: break
        case .refused(let response): later(response)
        }
    }

    private func admit(_ key: IdempotencyKey, _ digest: [UInt8], _ later: LateAnswer) -> Admission {
        underWay.withLock { underWay in
            guard let entry = underWay[key] else {
                guard underWay.count < Self.underWayMax else {
                    return .refused(.error(503, "too many publishes with an idempotency key are under way: try again in a moment"))
                }
                underWay[key] = UnderWay(digest: digest)
                return .first
            }
            if entry.digest != digest { return .refused(Self.otherRequest) }
            guard entry.waiting.count < Self.waitingMax else {
                return .refused(
                    .error(409, "\(Self.waitingMax + 1) requests with this idempotency key are under way already: wait for their answer"))
            }
            underWay[key]?.waiting.append(later)
            return .waits
        }
    }

    private func first(
        _ key: IdempotencyKey, _ digest: [UInt8], _ later: LateAnswer, _ publish: @Sendable (AnswerClaim) -> Void
    ) async {
        do {
            guard let kept = try await recall(key.app, key.text, time.wallMilliseconds - AnswerRecord.lifeMilliseconds) else {
                return publish(AnswerClaim(key: key, digest: digest, time: time, finish: LateAnswer { self.finish(key, $0, first: later) }))
            }
            let answer = HTTPResponse(status: kept.status, contentType: kept.contentType, body: kept.body)
            let response = kept.requestDigest == digest ? Self.replayed(answer) : Self.otherRequest
            finish(key, response, first: later)
        } catch {
            finish(key, .error(503, "the store did not answer and nothing was sent: try again in a moment"), first: later)
        }
    }

    private func finish(_ key: IdempotencyKey, _ response: HTTPResponse, first: LateAnswer) {
        // A second answer would go to those who wait under the key since, for another answer.
        guard let waiting = underWay.withLock({ $0.removeValue(forKey: key)?.waiting }) else {
            preconditionFailure("the claim on a key of app \(key.app) is finished twice")
        }
        assert(waiting.count <= Self.waitingMax, "\(waiting.count) requests waited for one answer")
        first(response)
        // A refusal is not kept: the next request under the key starts afresh.
        let isKept = (200..<300).contains(response.status)
        for later in waiting { later(isKept ? Self.replayed(response) : response) }
    }

    private static let replayedHeader = "Idempotency-Replayed"

    private static func replayed(_ response: HTTPResponse) -> HTTPResponse {
        guard !response.headers.contains(where: { $0.name == replayedHeader }) else { return response }
        var response = response
        response.headers.append((replayedHeader, "true"))
        return response
    }

    private static var otherRequest: HTTPResponse {
        .error(
            422,
            "this idempotency key was used for a different request less than 24 hours ago: send a new key with a new request, and the "
                + "same method, path and body with a retry")
    }
}

/// Claim on a free key. The holder publishes, and finishes once with the answer.
struct AnswerClaim: Sendable {
    let key: IdempotencyKey
    fileprivate let digest: [UInt8]
    fileprivate let time: any TimeSource
    /// Answers the first request and all that have waited since.
    let finish: LateAnswer

    fileprivate init(key: IdempotencyKey, digest: [UInt8], time: any TimeSource, finish: LateAnswer) {
        self.key = key
        self.digest = digest
        self.time = time
        self.finish = finish
    }

    /// The answer in its stored form.
    func record(_ response: HTTPResponse) -> AnswerRecord {
        AnswerRecord(
            app: key.app, key: key.text, requestDigest: digest, status: response.status, contentType: response.contentType,
            body: response.body, answeredAt: time.wallMilliseconds)
    }
}
