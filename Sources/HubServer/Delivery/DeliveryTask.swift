internal import HubAPI
internal import HubChannels
internal import HubCore
internal import HubCrypto
internal import HubDefinitions
internal import HubDelivery
internal import HubOutbox
internal import HubPush
internal import Logging
internal import PusherProtocol
internal import Synchronization

/// Delivery's one task: gives the book its items, reads for it, and carries out its effects in order.
///
/// A publish sees exactly the reports before it. A role that was assigned before a publish is in force on the loop when the frame arrives
/// there. Publishes that wait together are committed together. The task alone owns this object.
final class DeliveryTask {
    let service: DeliveryService
    var book: DeliveryBook
    /// Publishes that are not answered, by the number that the book knows them by.
    private(set) var commands: [UInt64: PublishCommand] = [:]
    private var lastCommand: UInt64 = 0
    /// Callers that wait for a change of the definitions.
    private var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    private var lastWaiter: UInt64 = 0
    /// Frames of the replay that the book is given.
    private var frames: [UInt8] = []

    // MARK: Several nodes

    let several: DeliveryService.Several?
    var table: NodeTable
    /// Partitions that this node decides about.
    var owned = PartitionSet()
    var takeovers: [Takeover] = []
    /// Reads for a takeover, after the reads for the one before: each looks through all open events.
    var reading: Task<Void, Never>?
    var keyed = KeyedPublishes()
    /// Publishes of other nodes that were taken or held, by sender and ticket: a sender repeats what waits for a new owner.
    var forwarded = RecentTable<String, Bool>(countMax: 10_000, ageMax: 5_000)
    var lastRound: UInt64 = 0
    var lastSerial: UInt64 = 0
    /// Publishes that came from the store, by name: the message that their sender gave up may come after all.
    var rowsTaken = RecentTable<String, Bool>(countMax: 10_000, ageMax: NodeDelivery.rememberedMilliseconds)

    init(_ service: DeliveryService) {
        self.service = service
        several = service.several
        table = NodeTable(process: service.process, loopCount: service.ports.count)
        var settings = DeliveryBook.Settings(loopCount: service.ports.count, tokenAge: service.tokenAge, payloadCheck: PayloadSizes())
        settings.firstNumber = several?.firstNumber ?? 0
        book = DeliveryBook(settings, definitions: service.currentDefinitions)
    }

    var now: Moment { service.time.moment }

    /// Works the inbox off until it is closed. Call once.
    /// - Parameter wasAway: an earlier process had people a moment ago, so everybody counts as on the way back.
    func run(wasAway: Bool) async {
        if wasAway { book.wasAway(at: now) }
        while let items = await service.inbox.next() {
            await turn(items)
            service.alarm.set(at: book.wakeAt, now: now.monotonic) { [inbox = service.inbox] in inbox.post(.book(.tick)) }
        }
        await carryOut(book.close())
        await carryOut(book.commit(at: now))
        await carryOut(book.end(at: now, isLast: true))
        assert(commands.isEmpty, "\(commands.count) publishes without an answer")
    }

    /// One turn: everything that has come is taken in order, committed together, and then everything that is due.
    func turn(_ items: [DeliveryService.Item]) async {
        book.begin(at: now)
        for item in items { await take(item) }
        service.isAttended.set(book.attendance.connectionCount > 0)
        await carryOut(book.commit(at: now))
        await carryOut(book.end(at: now))
        service.counters.withLock { $0.note(book) }
        several?.pushes.tick()
    }

    // MARK: Items

    private func take(_ item: DeliveryService.Item) async {
        switch item {
        case .book(let item): await give(item)
        case .reports(let loop, let reports):
            service.counters.withLock { $0.heard(reports) }
            for report in reports { if let word = word(report) { await give(.report(loop: loop, word)) } }
        case .publish(let command): await take(command)
        case .received(let receipt):
            service.counters.withLock { $0.received(.http) }
            await give(.received(receipt))
        case .bind(let socket, let app, let user, let device, let channel, let done):
            // An id that no connection of this process has is not worth remembering.
            if let connection = service.process.connection(of: socket) {
                await give(
                    .signed(connection, socket: socket.description, app: app, user: user, device: device, channel: channel?.text))
            }
            done.resume()
        case .removed(let session, let users, let isOver, let done):
            await give(.removed(session, users: users, isOver: isOver))
            done.resume()
        case .presence(let app, let channel, let users, let done):
            done.resume(returning: book.presence(app: app, channel: channel, users: users, at: now))
        case .definitions(let definitions, let done):
            lastWaiter += 1
            waiters[lastWaiter] = done
            await give(.definitions(definitions, waiter: lastWaiter))
        case .replay(let replay, let bytes):
            frames = bytes
            await give(.replay(replay))
            frames = []
        case .node(let word): await take(word)
        }
    }

    func take(_ command: PublishCommand) async {
        var command = command
        if let several, command.purpose.isReal {
            // The partition is the node's by now, and its people are not known yet: another look at the store takes the publish.
            guard several.isOwn(command, owned) else { return command.respond(.failure(DeliveryBook.notStored)) }
            if hold(command.app.id, command.requests, .command(command)) { return }
            if case .scheduled(let id) = command.purpose { rowsTaken.set(true, for: id, now: now.monotonic) }
            if command.mayBeKnown {
                guard let rest = await withoutKnown(command) else { return }
                command = rest
            }
        }
        lastCommand += 1
        commands[lastCommand] = command
        await give(.publish(publish(command, number: lastCommand)))
    }

    private func publish(_ command: PublishCommand, number: UInt64) -> DeliveryBook.Publish {
        let requests = command.requests.map {
            DeliveryBook.Publish.Request(
                name: $0.name, channels: $0.channels.map(\.text), excluded: $0.excludedSocketID.flatMap(table.connection(of:)))
        }
        return DeliveryBook.Publish(id: number, app: command.app.id, requests: requests, purpose: command.purpose)
    }

    /// Nil: another node decides about the channel.
    private func word(_ report: LoopReport) -> DeliveryBook.Report? {
        switch report {
        case .attached(let connection, let socket, let app, let channel, let user, let isBrowser, let ticket):
            attached(connection, socket, service.apps.apps[app], channel, user, isBrowser: isBrowser, ticket: ticket)
        case .stillAttached(let connection, let socket, let app, let channel, let user):
            attached(connection, socket, service.apps.apps[app], channel, user, isBrowser: false, ticket: nil)
        case .present(let connection, let socket, let app, let channel, let user, let isBrowser, let ticket, let state, let keepsWorking):
            present(
                connection, socket, service.apps.apps[app], channel, user, isBrowser: isBrowser, ticket: ticket, AppState(state),
                keepsWorking: keepsWorking)
        case .presentRead(_, let ticket): .presentUpTo(ticket: ticket)
        case .detached(let connection, let channel): .detached(connection, channel: channel.text)
        case .state(let connection, let state, let keepsWorking):
            .state(connection, AppState(state), keepsWorking: keepsWorking)
        case .disconnected(let connection, let departure):
            .disconnected(
                connection, socket: service.process.socketID(of: connection).description,
                mayReturn: departure.mayReturn)
        case .pinged(let events, let cursor): .pinged(events: events, cursor: cursor)
        case .proving(let event, let cursor): .proving(event: event, cursor: cursor)
        case .replayed(let connection, let tokens, let cursor): .replayed(connection, tokens: tokens, cursor: cursor)
        case .receipt(let connection, let cursor, _): .receipt(connection, cursor: cursor)
        case .definitionsRead: .definitionsRead
        }
    }

    private func attached(
        _ connection: ConnectionID, _ socket: SocketID, _ app: App, _ channel: ChannelName, _ user: String?, isBrowser: Bool,
        ticket: UInt64?
    ) -> DeliveryBook.Report? {
        guard serves(app.id, channel.text) else { return nil }
        return .attached(
            connection, socket: socket.description, app: app.id, channel: channel.text, user: user, isBrowser: isBrowser, ticket: ticket,
            silenceMax: app.pingInterval + app.pongTimeout)
    }

    private func present(
        _ connection: ConnectionID, _ socket: SocketID, _ app: App, _ channel: ChannelName, _ user: String?, isBrowser: Bool,
        ticket: UInt64, _ state: AppState, keepsWorking: Bool
    ) -> DeliveryBook.Report? {
        guard serves(app.id, channel.text) else { return nil }
        return .present(
            connection, socket: socket.description, app: app.id, channel: channel.text, user: user, isBrowser: isBrowser, ticket: ticket,
            silenceMax: app.pingInterval + app.pongTimeout, state: state, keepsWorking: keepsWorking)
    }

    func give(_ item: DeliveryBook.Item) async {
        if service.live?.isWatched == true, case .report(_, let report) = item { noteLive(report) }
        var answer = DeliveryBook.Answer.nothing
        if let need = book.need(of: item) { answer = await read(need, for: item) }
        await carryOut(book.take(item, answer, at: now))
    }

    // MARK: Reads

    private func read(_ need: DeliveryBook.Need, for item: DeliveryBook.Item) async -> DeliveryBook.Answer {
        switch need {
        case .events(let events):
            guard case .publish(let publish) = item, let command = commands[publish.id] else { return .nothing }
            do {
                var inputs: [DeliveryBook.EventInput] = []
                for event in events {
                    let audience = try await service.reader.audience(app: publish.app, event.definition, event.placeholders, event.event)
                    let data = command.requests[event.request].data
                    let id = command.ids.isEmpty ? nil : command.ids[event.request]
                    inputs.append(
                        DeliveryBook.EventInput(
                            audience: audience, content: data.content, data: data.contentValue ?? .null,
                            random: id?.random(event.channel) ?? SecureRandom.bytes(EventID.randomByteCount), idTime: id?.time))
                }
                return .events(inputs)
            } catch let refusal as PublishRefusal {
                return .refused(refusal)
            } catch {
                logStoreFailure(error)
                return .refused(DeliveryBook.notStored)
            }
        case .person(let app, let session, let user, let withSession):
            var found: Session?
            do {
                if withSession { found = try await service.directory.session(app: app, id: session) }
                return .person(session: found, try await service.directory.participant(app: app, session: session, user: user))
            } catch {
                service.logger.error(
                    "a role could not be read; the connection gets what is for everybody", metadata: ["error": "\(error)"])
                return .unreadable(session: found)
            }
        }
    }

    /// Asks the replayer for what somebody missed, or lets it wait for a takeover.
    func read(_ arrival: Arrival) async {
        if await hold(arrival) { return }
        if !service.replayer.post(arrival) { await give(.replay(.nothing(arrival))) }
    }

    private func logStoreFailure(_ error: any Error) {
        service.logger.error("a publish could not be stored", metadata: ["error": "\(error)"])
    }

    // MARK: Effects

    func carryOut(_ effects: [DeliveryBook.Effect]) async {
        for effect in effects { await carryOut(effect) }
    }

    private func carryOut(_ effect: DeliveryBook.Effect) async {
        let ports = service.ports
        switch effect {
        case .commit(let batch):
            let result = await commit(batch)
            await carryOut(book.committed(batch, result, at: now))
        case .letOut(let release): letOut(release)
        case .letOutAgain(let event, let release):
            letOut(
                release, app: event.app, channel: event.channel, name: event.name, data: DataLiteral(content: event.data), isAgain: true)
        case .respond(let number, let result): respond(number, result)
        case .forecast(let number, let forecasts):
            var outcome = PublishOutcome(events: [])
            outcome.forecasts = forecasts
            commands.removeValue(forKey: number)?.respond(.success([outcome]))
        case .again(let publishes): for publish in publishes { await give(.publish(publish)) }
        case .done(let numbers): for number in numbers { waiters.removeValue(forKey: number)?.resume() }
        case .push(let due): await service.pushes.enqueue(due)
        case .plan(let work):
            service.counters.withLock { $0.planned(work) }
            noteLive(work)
            service.escalator.post(work)
        case .prove(let event, let connections):
            for (loop, connections) in Dictionary(grouping: connections, by: \.loop) where loop < ports.count {
                ports.post(.prove(event: event, connections), to: loop)
            }
            if several != nil { prove(event, connections) }
        case .read(let arrival): await read(arrival)
        case .replay(let token, let replay):
            service.counters.withLock { $0.replayed(events: replay.items.count) }
            guard let channel = ChannelName(replay.arrival.channel) else { return }
            let connection = replay.arrival.connection
            guard connection.loop < ports.count else { return await self.replay(token, replay, frames) }
            ports.post(.replay(connection, channel: channel, frames: frames, events: [token]), to: connection.loop)
        case .ask(let round):
            for loop in 0..<ports.count {
                let answer: @Sendable (Int) -> Void = { [inbox = service.inbox] newcomers in
                    inbox.post(.book(.heard(round: round, source: loop, newcomers: newcomers)))
                }
                ports.post(.report(answer), to: loop)
            }
            if !table.isEmpty { several?.nodes.send(.ask(round: round)) }
        case .comeback(let word): service.outbox.comebacks.withLock { $0.note(word, now: now.monotonic) }
        case .roles(let connection, let channel, let roles):
            guard connection.loop < ports.count else { return assign(roles, to: connection, on: channel) }
            if let channel = ChannelName(channel) { ports.post(.audience(connection, channel: channel, roles), to: connection.loop) }
        case .signed(let connection, let channel):
            // The connection's own node reads the same order.
            guard connection.loop < ports.count else { return }
            ports.post(.bound(connection, channel: channel.flatMap { ChannelName($0) }), to: connection.loop)
        case .expel(let removal): expel(removal)
        case .readmit(let app, let channel, let user):
            guard let app = service.apps.app(id: app)?.index, let channel = ChannelName(channel) else { return }
            for loop in 0..<ports.count { ports.post(.readmit(app: app, channel: channel, user: user), to: loop) }
        case .definitions(let definitions):
            await service.putInForce(definitions)
            for loop in 0..<ports.count { ports.post(.definitionsChanged, to: loop) }
        }
    }

    private func commit(_ batch: DeliveryBook.Batch) async -> Result<[EventRecord], DeliveryBook.CommitFailure> {
        let records = batch.records
        let answers = batch.publishes.flatMap { publish in
            commands[publish.publish.id].flatMap { $0.answers?(outcomes(publish.outcomes, of: $0)) } ?? []
        }
        var events: [EventRecord] = []
        if !records.isEmpty || !answers.isEmpty || !batch.takes.isEmpty {
            do {
                events = try await service.store.commit(records, answers: answers, scheduled: batch.takes)
            } catch ScheduleError.notWaiting(let ids) {
                return .failure(.notWaiting(ids))
            } catch {
                logStoreFailure(error)
                return .failure(.store)
            }
        }
        service.counters.withLock { $0.committed(batch) }
        noteLive(batch, events)
        service.relief.committed(deliveries: records.reduce(0) { $0 + $1.deliveries.count { $0.state == .due } })
        return .success(events)
    }

    private func letOut(_ release: DeliveryBook.Release) {
        guard let command = commands[release.publish] else { return }
        let request = command.requests[release.request]
        let channel = request.channels[release.channel]
        if several != nil {
            return letOut(release, app: command.app.id, channel: channel.text, name: request.name, data: request.data, isAgain: false)
        }
        let frame = ServerEvent.event(name: request.name, channel: channel, data: request.data, eventID: release.eventID)
        // An event for some roles must not meet the next subscriber.
        let isCached = channel.kind.isCache && release.roles == .everybody
        let publication = Publication(
            app: command.app.index, frames: OneOrMany(one: ChannelFrame(channel, Frame.text(frame))), excluded: release.excluded,
            audience: release.roles, attendedUpTo: release.attendedUpTo, receipt: release.receipt,
            cacheOrder: isCached ? service.apps.nextOrder() : nil, arrivedAt: command.arrivedAt, way: .stored)
        for loop in 0..<service.ports.count { service.ports.post(.publish(publication), to: loop) }
    }

    private func respond(_ number: UInt64, _ result: Result<[[String?]], PublishRefusal>) {
        guard let command = commands.removeValue(forKey: number) else { return assertionFailure("publish \(number) is answered twice") }
        command.respond(result.map { outcomes($0, of: command) })
    }

    private func outcomes(_ outcomes: [[String?]], of command: PublishCommand) -> [PublishOutcome] {
        zip(command.requests, outcomes).map { request, ids in
            PublishOutcome(events: zip(request.channels, ids).compactMap { channel, id in id.map { (channel, $0) } })
        }
    }

    private func expel(_ removal: DeliveryBook.Removal) {
        guard let app = service.apps.app(id: removal.app)?.index else { return }
        let signed = removal.signed.compactMap { signed -> Expulsion.Signed? in
            guard let connection = SocketID(signed.socket).flatMap(service.process.connection(of:)),
                let channel = ChannelName(signed.channel)
            else { return nil }
            return Expulsion.Signed(connection: connection, channel: channel, user: signed.user)
        }
        guard let meant = meant(removal.meant) else { return }
        for loop in 0..<service.ports.count {
            service.ports.post(.expel(Expulsion(app: app, meant: meant, signed: signed)), to: loop)
        }
    }
    private func meant(_ meant: DeliveryBook.Removal.Meant) -> Expulsion.Meant? {
        switch meant {
        case .nobodyElse: return .nobodyElse
        case .everybody(let channel): return ChannelName(channel).map { .everybody($0) }
        case .user(let user, let channel): return ChannelName(channel).map { .user(user, $0) }
        case .session(let session, let definition):
            let definitions = book.definitions
            return .allOf { channel in
                definitions.match(channel: channel.text).map {
                    $0.definition.name == definition && $0.placeholders.session == session
                } ?? false
            }
        }
    }
}
