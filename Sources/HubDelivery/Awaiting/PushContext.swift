package import HubCore
package import HubDefinitions

/// Everything that a push of an event needs when it is made later than the publish.
package struct PushContext: Sendable {
    package let record: EventRecord
    /// The reading of both clocks that the record's times belong to.
    package let readAt: Moment
    package let definition: ChannelDefinition
    package let event: EventDefinition
    package let placeholders: ChannelPattern.Match
    /// The event's data, parsed.
    package let data: JSONValue

    package init(
        record: EventRecord, readAt: Moment, definition: ChannelDefinition, event: EventDefinition, placeholders: ChannelPattern.Match,
        data: JSONValue
    ) {
        self.record = record
        self.readAt = readAt
        self.definition = definition
        self.event = event
        self.placeholders = placeholders
        self.data = data
    }

    /// The record by the wall clock as it is now: where somebody set the clock meanwhile, the event's lifetime stays the same.
    func record(at now: Moment) -> EventRecord {
        let shift = (now.wall - now.monotonic) - (readAt.wall - readAt.monotonic)
        // Less is no step: clocks are slewed, and a machine is busy between two readings.
        if abs(shift) < ClockSteps.leastMilliseconds { return record }
        var record = record
        record.committedAt += shift
        record.expiresAt += shift
        return record
    }
}
