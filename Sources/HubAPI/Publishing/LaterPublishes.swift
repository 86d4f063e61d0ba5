internal import HubCore
internal import HubCrypto
internal import HubDelivery
internal import PusherProtocol

/// Events with `deliver_at`: checked now, stored, and published when due. Any thread.
struct LaterPublishes: Sendable {
    let delivery: any EventPort
    let schedule: any SchedulePort
    let answers: AnswerBook
    let time: any TimeSource

    /// Maximum delay in milliseconds: 30 days, the lifetime of events.
    static let aheadMillisecondsMax: Int64 = 30 * 24 * 60 * 60 * 1000

    /// Due times of the requests in milliseconds since 1970; nil: all are due now.
    func deliveryTimes(_ requests: [PublishRequest]) throws(APIError) -> [Int64]? {
        let now = time.wallMilliseconds
        let times = requests.compactMap(\.deliverAt)
        guard times.contains(where: { $0 > now }) else { return nil }
        guard times.allSatisfy({ $0 <= now + Self.aheadMillisecondsMax }) else {
            throw APIError(400, "deliver_at is more than 30 days ahead: send the event nearer to its time")
        }
        guard times.count == requests.count else {
            throw APIError(
                400, "some events of the batch have a deliver_at and some have none: send those for now and those for later apart")
        }
        guard requests.allSatisfy(\.attributes.isEmpty) else {
            throw APIError(400, "info tells what a channel is like now, which says nothing of an event with deliver_at: leave it out")
        }
        return times
    }

    /// Stores the requests until they are due, at most once per key. Refusals are found now.
    /// - Parameters:
    ///   - times: one per request; a past one is published right after storing.
    ///   - digest: of the request, if there is a key.
    func keep(
        _ requests: [PublishRequest], at times: [Int64], _ key: IdempotencyKey?, digest: [UInt8]?, app: App, isBatch: Bool,
        later: LateAnswer
    ) {
        guard let key, let digest else { return keep(requests, at: times, nil, app: app, isBatch: isBatch, later: later) }
        answers.once(key, digest: digest, later: later) { claim in
            keep(requests, at: times, claim, app: app, isBatch: isBatch, later: claim.finish)
        }
    }

    private func keep(
        _ requests: [PublishRequest], at times: [Int64], _ claim: AnswerClaim?, app: App, isBatch: Bool,
        later: LateAnswer
    ) {
        assert(times.count == requests.count, "\(requests.count) publishes have \(times.count) times")
        let (schedule, time) = (schedule, time)
        let trial = PublishCommand(app: app, requests: requests, purpose: .trial) { result in
            if case .failure(let refusal) = result { return later(.error(refusal.status, refusal.sentence)) }
            let now = time.wallMilliseconds
            let publishes = zip(requests, times).map { request, at in
                ScheduledPublish(
                    id: EventID.make(wallMilliseconds: now, random: SecureRandom.bytes(EventID.randomByteCount)), app: app.id,
                    deliverAt: at,
                    request: ScheduledRequest.encode(request), idempotencyKey: claim?.key.text, createdAt: now)
            }
            let response = Self.response(publishes, isBatch: isBatch)
            Task {
                do {
                    try await schedule.schedule(publishes, answers: claim.map { [$0.record(response)] } ?? [])
                    later(response)
                } catch ScheduleError.full {
                    later(
                        .error(
                            429,
                            "the app has \(ScheduledPublish.waitingMax) events that wait for their time: cancel some with "
                                + "DELETE /apps/\(app.id)/scheduled/{id}, or send this one nearer to its time"))
                } catch {
                    later(.error(503, "the event could not be stored and will not be sent: try again in a moment"))
                }
            }
        }
        if !delivery.submit(trial) { later(EventsResource.tooMany) }
    }

    private static func response(_ publishes: [ScheduledPublish], isBatch: Bool) -> HTTPResponse {
        let items = publishes.map { publish -> JSONValue in
            ["scheduled_id": .string(publish.id), "deliver_at": .string(Timestamp.iso8601(milliseconds: publish.deliverAt))]
        }
        if isBatch { return .json(["batch": .array(items)]) }
        return .json(items.first ?? [:])
    }
}
