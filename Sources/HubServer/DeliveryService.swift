internal import HubAPI
internal import HubChannels
internal import HubDelivery
internal import HubCore
internal import HubCrypto
internal import Logging
internal import PusherProtocol
internal import Synchronization

/// Delivery's own thread of work: keeps the attendance book, decides who is told on which surface, commits what was decided, and
/// only then lets the event out.
///
/// One task takes everything in order from one inbox: attendance reports, publishes, what apps say of themselves. So a
/// publish sees exactly what was reported before it, and a role that was assigned before a publish is in force on the loop
/// when its frame arrives there. Publishes that wait together are committed together.
final class DeliveryService: EventDesk, AttendanceDesk {
    enum Item: Sendable {
        case reports(loop: Int, [AttendanceReport])
        case publish(PublishCommand)
        case deviceState(app: String, user: String, device: String, AppState)
        case bind(socketID: String, app: String, user: String, device: String, done: CheckedContinuation<Void, Never>)
        case presence(app: String, channel: String, users: [String], done: CheckedContinuation<[String: ParticipantPresence], Never>)
        case rosterChanged(app: String, session: String, user: String)
        case definitions(DefinitionSet, done: CheckedContinuation<Void, Never>)
    }

    private let inbox = Inbox<Item>()
    private let definitions: Mutex<DefinitionSet>
    private let directory: any HubDelivery.Directory
    private let store: any DeliveryStore
    private let apps: AppDirectory
    private let outbox: Outbox
    private let ports: EnginePorts
    private let time: any TimeSource
    private let process: ProcessTag
    private let logger: Logger

    /// Publishes that may wait for their commit; one more is answered 503.
    static let waitingMax = 10_000
    /// Publishes committed in one transaction.
    static let commitMax = 64

    init(
        definitions: DefinitionSet, directory: any HubDelivery.Directory, store: any DeliveryStore, apps: AppDirectory, outbox: Outbox,
        ports: EnginePorts, process: ProcessTag, time: any TimeSource, logger: Logger
    ) {
        self.definitions = Mutex(definitions)
        self.directory = directory
        self.store = store
        self.apps = apps
        self.outbox = outbox
        self.ports = ports
        self.process = process
        self.time = time
        self.logger = logger
    }

    // MARK: From any thread

    var currentDefinitions: DefinitionSet { definitions.withLock { $0 } }

    func isDefined(_ channel: ChannelName) -> Bool {
        currentDefinitions.match(channel: channel.text) != nil
    }

    /// Puts other definitions in force; returns when every loop goes by them. Nothing happens once the service is closed.
    func change(to definitions: DefinitionSet) async {
        await withCheckedContinuation { done in
            if !inbox.offer(.definitions(definitions, done: done), limit: .max) { done.resume() }
        }
    }

    func submit(_ command: PublishCommand) -> Bool {
        inbox.offer(.publish(command), limit: Self.waitingMax)
    }

    func report(_ reports: [AttendanceReport], loop: Int) {
        inbox.post(.reports(loop: loop, reports))
    }

    func bind(socketID: String, app: String, user: String, device: String) async {
        await withCheckedContinuation { inbox.post(.bind(socketID: socketID, app: app, user: user, device: device, done: $0)) }
    }

    func setDeviceState(app: String, user: String, device: String, _ state: AppState) async {
        inbox.post(.deviceState(app: app, user: user, device: device, state))
    }

    func presence(app: String, session: Session, users: [String]) async -> [String: ParticipantPresence] {
        guard let definition = currentDefinitions.definition(named: session.definition) else { return [:] }
        var presence: [String: ParticipantPresence] = [:]
        for user in users {
            guard let channel = definition.pattern.channelName(session: session.id, user: user) else { continue }
            let answer = await withCheckedContinuation { inbox.post(.presence(app: app, channel: channel, users: [user], done: $0)) }
            presence.merge(answer) { first, _ in first }
        }
        return presence
    }

    func rosterChanged(app: String, session: String, user: String) async {
        inbox.post(.rosterChanged(app: app, session: session, user: user))
    }

    /// No publish is taken from now on; `run` returns when what waits is done.
    func close() {
        inbox.close()
    }

    // MARK: The one task

    /// Works the inbox off until `close`. Call once.
    func run() async {
        var desk = DecisionDesk(loopCount: ports.count)
        var change: DefinitionChange?
        var prepared: [PreparedPublish] = []
        while let items = await inbox.next() {
            for item in items {
                switch item {
                case .publish(let command):
                    if change == nil {
                        await take(command, desk, &prepared)
                    } else if change?.hold(command) == false {
                        command.respond(.failure(PublishRefusal(status: 503, sentence: "too many publishes are waiting: try again in a moment")))
                    }
                case .definitions(let new, let done):
                    // What was decided by the former ones goes out first.
                    await commit(&prepared)
                    change = DefinitionChange(from: currentDefinitions, loopCount: ports.count, overtaking: change, done: done)
                    definitions.withLock { $0 = new }
                    for loop in 0..<ports.count { ports.post(.definitionsChanged, to: loop) }
                case .reports(let loop, let reports):
                    for report in reports where await handle(report, loop: loop, &desk, &change) {
                        await finish(&change, desk, &prepared)
                    }
                default: await handle(item, &desk)
                }
            }
            await commit(&prepared)
        }
        // Closed in the middle of a change: what waits for it is decided by what is known.
        await finish(&change, desk, &prepared)
        await commit(&prepared)
    }

    private func take(_ command: PublishCommand, _ desk: DecisionDesk, _ prepared: inout [PreparedPublish]) async {
        do {
            prepared.append(try await prepare(command, desk: desk))
        } catch let refusal as PublishRefusal {
            command.respond(.failure(refusal))
        } catch {
            command.respond(.failure(storeFailure(error)))
        }
        if prepared.count >= Self.commitMax { await commit(&prepared) }
    }

    private func finish(_ change: inout DefinitionChange?, _ desk: DecisionDesk, _ prepared: inout [PreparedPublish]) async {
        guard let finished = change else { return }
        change = nil
        for command in finished.held { await take(command, desk, &prepared) }
        finished.finish()
    }

    private func storeFailure(_ error: any Error) -> PublishRefusal {
        logger.error("a publish could not be stored", metadata: ["error": "\(error)"])
        return PublishRefusal(status: 503, sentence: "the event could not be stored and was not sent: try again in a moment")
    }

    private func handle(_ item: Item, _ desk: inout DecisionDesk) async {
        switch item {
        case .publish, .definitions, .reports: break
        case .deviceState(let app, let user, let device, let state):
            desk.attendance.setDeviceState(app: app, user: user, device: device, state)
        case .bind(let socketID, let app, let user, let device, let done):
            desk.attendance.bind(socketID: socketID, app: app, user: user, device: device)
            done.resume()
        case .presence(let app, let channel, let users, let done):
            done.resume(returning: desk.presence(app: app, channel: channel, users: users))
        case .rosterChanged(let app, let session, let user):
            await rolesChanged(app: app, session: session, user: user, desk)
        }
    }

    /// Enters a report in the book; true when it completes a change of the definitions.
    private func handle(_ report: AttendanceReport, loop: Int, _ desk: inout DecisionDesk, _ change: inout DefinitionChange?) async -> Bool {
        switch report {
        case .attached(let connection, let socketID, let app, let channel, let reportedUser, _, let ticket):
            desk.attendedUpTo[loop] = ticket
            await attach(connection, socketID, app: app, channel: channel, user: reportedUser, &desk)
        case .stillAttached(let connection, let socketID, let app, let channel, let reportedUser):
            if let definition = currentDefinitions.match(channel: channel.text)?.definition,
                change?.keeps(definition, of: channel) == true
            { break }
            await attach(connection, socketID, app: app, channel: channel, user: reportedUser, &desk)
        case .definitionsRead: return change?.loopAnswered() ?? false
        case .detached(let connection, let channel): desk.attendance.detach(connection, channel: channel.text)
        case .state(let connection, let state):
            desk.attendance.setState(connection, state == .foreground ? .foreground : .background)
        // Nothing that delivery decides waits for a receipt yet.
        case .probed, .proving, .replayed, .receipt: break
        case .disconnected(let connection, _):
            desk.attendance.disconnected(connection)
            desk.attendance.unbind(socketID: process.socketID(of: connection).description)
        }
        return false
    }

    private func attach(
        _ connection: ConnectionID, _ socketID: SocketID, app: Int, channel: ChannelName, user reportedUser: String?,
        _ desk: inout DecisionDesk
    ) async {
        guard let (definition, placeholders) = currentDefinitions.match(channel: channel.text), let user = reportedUser ?? placeholders.user
        else { return desk.attendance.detach(connection, channel: channel.text) }
        let appID = apps.apps[app].id
        let device = desk.attendance.device(boundTo: socketID.description, app: appID, user: user)
        desk.attendance.attach(connection, app: appID, channel: channel.text, user: user, device: device)
        await assignRole(of: user, to: [connection], app: appID, channel: channel, definition, session: placeholders.session)
    }

    // MARK: Roles

    /// Tells the loops for which roles connections stand. Definitions without roles need none of it.
    private func assignRole(
        of user: String, to connections: [ConnectionID], app: String, channel: ChannelName, _ definition: ChannelDefinition, session: String?
    ) async {
        guard !definition.roles.isEmpty, let session, !connections.isEmpty else { return }
        var role: String?
        do {
            role = try await directory.participant(app: app, session: session, user: user)?.role
        } catch {
            logger.error("a role could not be read; the connection gets what is for everybody", metadata: ["error": "\(error)"])
        }
        let roles = RoleSet(role: role, in: definition)
        for connection in connections { ports.post(.audience(connection, channel: channel, roles), to: connection.loop) }
    }

    private func rolesChanged(app: String, session: String, user: String, _ desk: DecisionDesk) async {
        do {
            guard let found = try await directory.session(app: app, id: session),
                let definition = currentDefinitions.definition(named: found.definition),
                let text = definition.pattern.channelName(session: session, user: user), let channel = ChannelName(text)
            else { return }
            let connections = desk.attendance.connections(app: app, channel: text, user: user)
            await assignRole(of: user, to: connections, app: app, channel: channel, definition, session: session)
        } catch {
            logger.error("a changed role could not be read", metadata: ["error": "\(error)"])
        }
    }

    // MARK: Publishing

    private func prepare(_ command: PublishCommand, desk: DecisionDesk) async throws -> PreparedPublish {
        var prepared = PreparedPublish(command: command)
        let definitions = currentDefinitions
        for request in command.requests {
            let excluded = request.excludedSocketID.flatMap(process.connection(of:))
            var outcome = PublishOutcome(events: [])
            for channel in request.channels {
                let frame = Frame.text(ServerEvent.event(name: request.name, channel: channel, data: request.data))
                var publication = Publication(
                    app: command.app.index, frames: [(channel, frame)], excluded: excluded,
                    cacheOrder: channel.kind.isCache ? apps.nextOrder() : nil)
                if let (definition, placeholders) = definitions.match(channel: channel.text), let event = definition.events[request.name] {
                    let audience = try await recipients(command.app, channel, definition, placeholders, event)
                    let decided = try desk.decide(
                        event, request: request, channel: channel, audience: audience, excluded: excluded,
                        now: time.wallMilliseconds, random: SecureRandom.bytes(EventID.randomByteCount))
                    publication.audience = decided.roles
                    // What is for some roles only must not meet whoever subscribes next.
                    if decided.roles != .everybody { publication.cacheOrder = nil }
                    if let record = decided.event {
                        publication.attendedUpTo = desk.attendedUpTo
                        prepared.records.append((record, decided.deliveries))
                        outcome.events.append((channel, record.id))
                    }
                }
                prepared.publications.append(publication)
            }
            prepared.outcomes.append(outcome)
        }
        prepared.answer = command.answer?(prepared.outcomes)
        return prepared
    }

    private func recipients(
        _ app: App, _ channel: ChannelName, _ definition: ChannelDefinition, _ placeholders: ChannelPattern.Match, _ event: EventDefinition
    ) async throws -> EventAudience {
        var audience = EventAudience(app: app.id, definition: definition, placeholders: placeholders, session: nil, entries: [])
        guard event.variants.contains(where: { $0.policy != .realtimeOnly }) else { return audience }
        if let id = placeholders.session {
            guard let session = try await directory.session(app: app.id, id: id) else {
                throw PublishRefusal(
                    status: 404,
                    sentence: "'\(event.name)' is told to the participants of a session, and there is no session '\(id)': create it with "
                        + "PUT /apps/\(app.id)/sessions/\(id), or publish to a channel that no definition is about")
            }
            audience.session = session
            let roster = try await directory.roster(app: app.id, session: id)
            audience.entries = roster.filter { placeholders.user == nil || $0.participant.user == placeholders.user }
                .map { EventAudience.Entry(user: $0.participant.user, participant: $0.participant, devices: $0.devices) }
        } else if let user = placeholders.user {
            let devices = try await directory.devices(app: app.id, user: user)
            audience.entries = [EventAudience.Entry(user: user, participant: nil, devices: devices)]
        }
        return audience
    }

    /// Commits, then lets out: frames to the loops, pushes to the outbox, answers to the publishers.
    private func commit(_ prepared: inout [PreparedPublish]) async {
        guard !prepared.isEmpty else { return }
        let batch = prepared
        prepared = []
        var events: [EventRecord] = []
        let records = batch.flatMap(\.records)
        let answers = batch.compactMap(\.answer)
        if !records.isEmpty || !answers.isEmpty {
            do {
                events = try await store.commit(records, answers: answers)
            } catch {
                let refusal = storeFailure(error)
                for publish in batch { publish.command.respond(.failure(refusal)) }
                return
            }
        }
        for publish in batch {
            for publication in publish.publications {
                for loop in 0..<ports.count { ports.post(.publish(publication), to: loop) }
            }
            publish.command.respond(.success(publish.outcomes))
        }
        let sequences = Dictionary(events.map { ($0.id, $0.sequence) }, uniquingKeysWith: { first, _ in first })
        let due = records.flatMap(\.deliveries).filter { $0.state == .due }.map { delivery in
            var delivery = delivery
            delivery.message?.sequence = sequences[delivery.event] ?? 0
            return delivery
        }
        if !due.isEmpty { await outbox.enqueue(due) }
    }
}

/// A publish that has been decided and not yet committed.
struct PreparedPublish: Sendable {
    let command: PublishCommand
    var records: [(event: EventRecord, deliveries: [DeliveryRecord])] = []
    var publications: [Publication] = []
    var outcomes: [PublishOutcome] = []
    /// Of a publish with an idempotency key.
    var answer: AnswerRecord?

    init(command: PublishCommand) {
        self.command = command
    }
}
