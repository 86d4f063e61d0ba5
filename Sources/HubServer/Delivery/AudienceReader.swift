internal import HubAPI
internal import HubChannels
internal import HubDefinitions
internal import HubDelivery

/// Reads from the directory whom an event of a definition concerns.
struct AudienceReader: Sendable {
    let directory: any PeopleStore

    /// - Throws: `PublishRefusal` when the event is told to the participants of a session that does not exist.
    func audience(
        app: String, _ definition: ChannelDefinition, _ placeholders: ChannelPattern.Match, _ event: EventDefinition
    ) async throws -> EventAudience {
        var audience = EventAudience(app: app, definition: definition, placeholders: placeholders, session: nil, entries: [])
        guard event.variants.contains(where: { $0.policy != .realtimeOnly }) else { return audience }
        if let id = placeholders.session {
            guard let session = try await directory.session(app: app, id: id) else {
                throw PublishRefusal(
                    status: 404,
                    sentence: "'\(event.name)' is told to the participants of a session, and there is no session '\(id)': create it with "
                        + "PUT /apps/\(app)/sessions/\(id), or publish to a channel that no definition is about")
            }
            audience.session = session
            let roster = try await directory.roster(app: app, session: id)
            audience.entries = roster.filter { placeholders.user == nil || $0.participant.user == placeholders.user }
                .map { EventAudience.Entry(user: $0.participant.user, participant: $0.participant, devices: $0.devices) }
        } else if let user = placeholders.user {
            let devices = try await directory.devices(app: app, user: user)
            audience.entries = [EventAudience.Entry(user: user, participant: nil, devices: devices)]
        }
        return audience
    }
}
