package import HubCore
package import HubDefinitions
package import HubDelivery
package import PusherProtocol

/// Tandem's own routes for backends, below `/apps/{app}`. The caller has verified the request's signature. Any thread.
package struct BackendAPI: Sendable {
    private let sessions: SessionsResource
    private let participants: ParticipantsResource
    private let devices: DevicesResource
    private let history: HistoryResource
    private let trail: TrailResource
    private let scheduled: ScheduledResource
    private let bulk: BulkDevicesResource
    private let notifications: NotificationsResource
    private let deadLetters: DeadLettersResource
    private let search: SearchResource
    private let person: PersonResource
    private let recent: RecentEventsResource
    private let live: LiveResource
    private let links: LinksResource
    private let members: MembersResource

    /// - Parameters:
    ///   - definitions: returns the definitions in force.
    ///   - defaultEnvironment: of APNs tokens without an environment.
    ///   - occupied: finds occupied channels.
    ///   - node: returns the name of this node; nil: there is one.
    ///   - missing: returns the names of nodes of which a listener of `live` is told nothing at the moment.
    package init(
        directory: any PeopleStore, store: any DeliveryStore, delivery: any AttendancePort, pushes: any PushQueue, answers: AnswerBook,
        time: any TimeSource, definitions: @escaping @Sendable () -> DefinitionSet, defaultEnvironment: APNsEnvironment,
        tokenAge: TokenAge = .standard, occupied: OccupiedChannels, live: LiveStream,
        node: @escaping @Sendable () -> String? = { nil }, missing: @escaping @Sendable (_ listener: UInt64) -> [String] = { _ in [] }
    ) {
        let shelf = DeviceRegistry(directory: directory, time: time, defaultEnvironment: defaultEnvironment)
        sessions = SessionsResource(directory: directory, delivery: delivery, definitions: definitions)
        participants = ParticipantsResource(directory: directory, delivery: delivery, time: time, definitions: definitions)
        devices = DevicesResource(shelf: shelf)
        bulk = BulkDevicesResource(shelf: shelf)
        notifications = NotificationsResource(
            store: store, directory: directory, pushes: pushes, answers: answers, time: time, defaultEnvironment: defaultEnvironment,
            tokenAge: tokenAge)
        deadLetters = DeadLettersResource(store: store, pushes: pushes, time: time)
        history = HistoryResource(store: store)
        trail = TrailResource(store: store)
        search = SearchResource(store: store, definitions: definitions, occupied: occupied)
        person = PersonResource(store: store, directory: directory, delivery: delivery, definitions: definitions)
        recent = RecentEventsResource(store: store, time: time)
        self.live = LiveResource(live, node: node, missing: missing)
        links = LinksResource(store: store, time: time)
        members = MembersResource(delivery: delivery, definitions: definitions, occupied: occupied)
        scheduled = ScheduledResource(store: store, time: time)
    }

    /// Nil if the path is none of these routes.
    /// - Parameter pathComponents: the path after `/apps/{app}/`, percent-decoded.
    package func respond(to request: HTTPRequest, app: App, pathComponents path: [String]) async -> HTTPResponse? {
        do {
            switch (path.first, path.count) {
            case ("sessions", 2): return try await sessions.respond(to: request, app: app.id, session: path[1])
            case ("sessions", 3) where path[2] == "participants":
                return try await participants.respondToList(request, app: app.id, session: path[1])
            case ("sessions", 4) where path[2] == "participants":
                return try await participants.respond(to: request, app: app.id, session: path[1], user: path[3])
            case ("sessions", 5) where path[2] == "participants" && path[4] == "token":
                return try await participants.issueToken(request, app: app, session: path[1], user: path[3])
            case ("search", 1): return try await search.respond(to: request, app: app)
            case ("live", 1): return try await live.respond(to: request, app: app.id)
            case ("links", 1): return try await links.make(request, app: app)
            case ("events", 1): return try await recent.respond(to: request, app: app.id)
            case ("users", 2): return try await person.respond(to: request, app: app.id, user: path[1])
            case ("users", 3) where path[2] == "devices": return try await devices.respondToList(request, app: app.id, user: path[1])
            case ("users", 4) where path[2] == "devices":
                return try await devices.respond(to: request, app: app.id, user: path[1], device: path[3])
            case ("channels", 3) where path[2] == "members": return try await members.respond(to: request, app: app, channel: path[1])
            case ("channels", 3) where path[2] == "history": return try await history.channel(request, app: app.id, channel: path[1])
            case ("events", 3) where path[2] == "deliveries": return try await trail.event(request, app: app.id, event: path[1])
            case ("users", 3) where path[2] == "deliveries": return try await trail.user(request, app: app.id, user: path[1])
            case ("devices", 1): return try await bulk.respond(to: request, app: app.id)
            case ("notifications", 1): return try await notifications.respond(to: request, app: app)
            case ("dead-letters", 1): return try await deadLetters.respondToList(request, app: app.id)
            case ("dead-letters", 2) where path[1] == "replay": return try await deadLetters.replay(request, app: app.id)
            case ("dead-letters", 3): return try await deadLetters.respond(to: request, app: app.id, nid: path[1], device: path[2])
            case ("scheduled", 1): return try await scheduled.respondToList(request, app: app.id)
            case ("scheduled", 2): return try await scheduled.respond(to: request, app: app.id, id: path[1])
            default: return nil
            }
        } catch {
            return APIError(answering: error).response
        }
    }
}
