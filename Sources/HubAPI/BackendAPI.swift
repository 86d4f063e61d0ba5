package import HubChannels
package import HubCore
package import HubDelivery

/// Tandem's own routes for backends, below `/apps/{app}`. The caller has verified the request's signature. Any thread.
package struct BackendAPI: Sendable {
    private let sessions: SessionsResource
    private let participants: ParticipantsResource
    private let devices: DevicesResource
    private let history: HistoryResource
    private let trail: TrailResource
    private let scheduled: ScheduledResource

    /// - Parameters:
    ///   - definitions: those in force at the moment of the call.
    ///   - defaultEnvironment: of APNs tokens that come without one.
    package init(
        directory: any Directory, store: any DeliveryStore, desk: any AttendanceDesk, time: any TimeSource,
        definitions: @escaping @Sendable () -> DefinitionSet, defaultEnvironment: APNsEnvironment
    ) {
        sessions = SessionsResource(directory: directory, desk: desk, definitions: definitions)
        participants = ParticipantsResource(directory: directory, desk: desk, definitions: definitions)
        devices = DevicesResource(shelf: DeviceShelf(directory: directory, time: time, defaultEnvironment: defaultEnvironment))
        history = HistoryResource(store: store)
        trail = TrailResource(store: store)
        scheduled = ScheduledResource(store: store, time: time)
    }

    /// Nil when the path is none of these routes.
    /// - Parameter pathComponents: what follows `/apps/{app}/`, percent-decoded.
    package func respond(to request: HTTPRequest, app: App, pathComponents path: [String]) async -> HTTPResponse? {
        do {
            switch (path.first, path.count) {
            case ("sessions", 2): return try await sessions.respond(to: request, app: app.id, session: path[1])
            case ("sessions", 3) where path[2] == "participants":
                return try await participants.respondToList(request, app: app.id, session: path[1])
            case ("sessions", 4) where path[2] == "participants":
                return try await participants.respond(to: request, app: app.id, session: path[1], user: path[3])
            case ("users", 3) where path[2] == "devices": return try await devices.respondToList(request, app: app.id, user: path[1])
            case ("users", 4) where path[2] == "devices":
                return try await devices.respond(to: request, app: app.id, user: path[1], device: path[3])
            case ("channels", 3) where path[2] == "history": return try await history.channel(request, app: app.id, channel: path[1])
            case ("events", 3) where path[2] == "deliveries": return try await trail.respond(to: request, app: app.id, event: path[1])
            case ("scheduled", 1): return try await scheduled.respondToList(request, app: app.id)
            case ("scheduled", 2): return try await scheduled.respond(to: request, app: app.id, id: path[1])
            default: return nil
            }
        } catch {
            return APIError(answering: error).response
        }
    }
}
