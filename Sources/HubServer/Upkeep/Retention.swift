internal import HubCore
internal import HubDelivery
internal import Logging

/// Forgets what is kept for a time only: answers under idempotency keys, events that have ended, and devices
/// whose tokens have expired.
///
/// In small steps with pauses between them, because each holds the store's one writer while publishers wait for it.
struct Retention: Sendable {
    let store: any DeliveryStore
    let directory: any HubDelivery.Directory
    let clock: RetentionClock
    let logger: Logger

    /// How long an event and its trail are kept after it was published, in milliseconds: 30 days. No push lives longer than
    /// the 28 days that FCM keeps one.
    static let eventLifeMilliseconds: Int64 = 30 * 24 * 60 * 60 * 1000
    static let period: Duration = .seconds(60)
    /// Answers of each kind that one transaction removes.
    static let answersStepMax = 500
    /// Events that one transaction removes; each may have a row for every device of a full session.
    static let eventsStepMax = 50
    /// Devices that one transaction removes.
    static let devicesStepMax = 500
    static let pause: Duration = .milliseconds(20)

    /// Works until its task is cancelled.
    func run() async {
        while await sleep(Self.period) { await forget() }
    }

    /// One round: returns when nothing is left to be forgotten, or the task is cancelled.
    /// - Parameter answersMax: answers that stay at most, however young.
    func forget(answersMax: Int = AnswerRecord.keptMax) async {
        do {
            var displaced = 0
            while true {
                let answers = try await store.pruneAnswers(
                    before: clock.cutoff(life: AnswerRecord.lifeMilliseconds), keeping: answersMax, limit: Self.answersStepMax)
                let events = try await store.prune(before: clock.cutoff(life: Self.eventLifeMilliseconds), limit: Self.eventsStepMax)
                let devices = try await directory.pruneDevices(
                    idleSince: clock.cutoff(life: TokenAge.expiredAfterMilliseconds), limit: Self.devicesStepMax)
                displaced += answers.displaced
                let isMore =
                    max(answers.expired, answers.displaced) == Self.answersStepMax || events == Self.eventsStepMax
                    || devices == Self.devicesStepMax
                guard isMore, await sleep(Self.pause) else { break }
            }
            if displaced > 0 {
                logger.warning(
                    "more idempotency keys came in a day than are kept; the oldest are forgotten before their time",
                    metadata: ["answers.displaced": "\(displaced)", "answers.max": "\(answersMax)"])
            }
        } catch {
            logger.error("what is old could not be removed from the store; trying again", metadata: ["error": "\(error)"])
        }
    }

    /// False: cancelled.
    private func sleep(_ duration: Duration) async -> Bool {
        do { try await Task.sleep(for: duration) } catch { return false }
        return true
    }
}
