package import HubChannels
package import HubCore
package import HubDefinitions
package import HubDelivery

/// Routes for apps: joining, which needs only a code, and those with a participant token; and the route of links to trails. Any thread.
package struct ParticipantAPI: Sendable {
    private let joining: JoinResource
    private let waiting: WaitingDevices
    private let auth: PusherAuthResource
    private let me: MeResource
    private let links: LinksResource
    private let apps: AppDirectory

    /// Makes the join counters too. One value must serve all loops, because each loop would count for itself otherwise.
    /// - Parameters:
    ///   - definitions: returns the definitions in force.
    ///   - defaultEnvironment: of APNs tokens without an environment.
    ///   - limits: of joins.
    ///   - pause: waits until a join's turn.
    package init(
        directory: any PeopleStore, store: any DeliveryStore, apps: AppDirectory, delivery: any AttendancePort, time: any TimeSource,
        definitions: @escaping @Sendable () -> DefinitionSet, defaultEnvironment: APNsEnvironment, limits: JoinLimits,
        pause: @escaping Pause = { try? await Task.sleep(for: .nanoseconds(Int64(clamping: $0))) }
    ) {
        let shelf = DeviceRegistry(directory: directory, time: time, defaultEnvironment: defaultEnvironment)
        let bearers = BearerCheck(apps: apps, directory: directory, time: time)
        joining = JoinResource(
            directory: directory, delivery: delivery, apps: apps, devices: JoiningDevices(shelf: shelf),
            gates: JoinGates(limits, time: time, pause: pause), time: time, definitions: definitions)
        waiting = WaitingDevices(
            apps: apps, shelf: shelf, gate: limits.pace().map { PaceGate("devices registered from this address", $0) }, time: time)
        auth = PusherAuthResource(bearers: bearers, directory: directory, delivery: delivery, time: time, definitions: definitions)
        self.apps = apps
        links = LinksResource(store: store, time: time)
        me = MeResource(
            bearers: bearers, delivery: delivery, shelf: shelf, history: HistoryResource(store: store),
            receipts: ReceiptsResource(store: store, directory: directory, delivery: delivery, definitions: definitions), time: time)
    }

    /// Nil if the path is none of these routes. The path is percent-decoded; a trailing slash is ignored.
    package func respond(to request: HTTPRequest) async -> HTTPResponse? {
        let path = request.path.split(separator: "/").map(String.init)
        do {
            switch path {
            case ["games"]: return try await waiting.respond(to: request)
            case ["games", "join"]: return try await joining.respond(to: request, joinCode: nil)
            case ["pusher", "auth"]: return try await auth.channel(request)
            case ["pusher", "user-auth"]: return try await auth.user(request)
            case ["me", "state"]: return try await me.state(request)
            case ["me", "events"]: return try await me.events(request)
            case ["me", "receipts"]: return try await me.receipt(request)
            case ["links", "trail"]: return try await links.read(request, apps: apps)
            case ["me", "device"]: return try await me.device(request)
            case _ where path.count == 5 && Array(path[..<3]) == ["api", "scenarios", "sessions"] && path[4] == "join":
                return try await joining.respond(to: request, joinCode: path[3])
            default: return nil
            }
        } catch {
            return APIError(answering: error).response
        }
    }
}
