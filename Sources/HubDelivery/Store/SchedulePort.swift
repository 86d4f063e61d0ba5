/// Stores publishes until they are due, and then publishes them. Any thread.
package protocol SchedulePort: Sendable {
    /// Commits publishes and their answers in one transaction. They survive a crash of the process once it returns.
    /// - Throws: `ScheduleError.full`, and the store's errors; nothing was written then.
    func schedule(_ publishes: [ScheduledPublish], answers: [AnswerRecord]) async throws
}
