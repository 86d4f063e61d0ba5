package import HubDelivery

/// Keeps publishes until their time comes, and publishes them then. Any thread.
package protocol ScheduleDesk: Sendable {
    /// Writes publishes, and the answers that tell of them, in one transaction. When it returns they survive a crash of the process.
    /// - Throws: `ScheduleError.full`, and the store's errors; nothing was written then.
    func schedule(_ publishes: [ScheduledPublish], answers: [AnswerRecord]) async throws
}
