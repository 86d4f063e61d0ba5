internal import HubCore
internal import HubDelivery
internal import Logging

/// Removes expired data: answers under idempotency keys, ended events, and devices whose tokens have expired.
///
/// Works in small steps with pauses, because each step holds the store's only writer while publishers wait.
struct Retention: Sendable {
    let store: any DeliveryStore
    let directory: any PeopleStore
    let clock: RetentionClock
    let logger: Logger

    /// Milliseconds for which an event and its trail are kept after its commit: 30 days. No push lives longer than the 28 days of FCM.
    static let eventLifeMilliseconds: Int64 = 30 * 24 * 60 * 60 * 1000
    static let period: Duration = .seconds(60)
    /// Most answers of each kind that one transaction removes.
    static let answersStepMax = 500
    /// Most events that one transaction removes; each may have a row per device of a full session.
    static let eventsStepMax = 50
    /// Most devices that one transaction removes.
    static let devicesStepMax = 500
    static let pause: Duration = .milliseconds(20)

    /// Runs until the task is cancelled.
    func run() async {
        while await sleep(Self.period) { await forget() }
    }

    /// Removes everything that is old; returns early if the task is cancelled.
    /// - Parameter answersMax: most answers that stay, however young.
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

    /// Returns false if cancelled.
    private func sleep(_ duration: Duration) async -> Bool {
        do { try await Task.sleep(for: duration) } catch { return false }
        return true
    }
}
