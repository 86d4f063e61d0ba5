internal import HubAPI
internal import HubChannels
internal import HubCore
internal import HubDefinitions
internal import HubDelivery
internal import Logging
internal import PusherProtocol
internal import Synchronization

/// The delivery task as one of several: it decides about the channels whose partitions this node owns.
extension DeliveryTask {
    /// Whether this node decides about the channel.
    func serves(_ app: String, _ channel: String) -> Bool { several == nil || owned.contains(app: app, channel: channel) }

    func take(_ word: DeliveryService.NodeWord) async {
        guard let several else { return }
        switch word {
        case .joined(let node, let hello):
            guard !table.contains(node) else { break }
            // A publish that is decided knows the loops of that moment.
            await carryOut(book.commit(at: now))
            guard let loops = book.addLoops(hello.loopCount) else {
                service.logger.error("there are too many nodes: who is on one of them counts as absent", metadata: ["node": "\(node)"])
                break
            }
            table.add(node, hello, loops: loops)
        case .left(let node):
            await carryOut(book.commit(at: now))
            if let loops = table.remove(node) { book.removeLoops(loops, at: now) }
            for place in takeovers.indices { takeovers[place].awaited.remove(node) }
            await read()
            lookForPushes()
        case .remained(let nodes): several.nodes.giveUp(table.names.subtracting(nodes))
        case .gap(let node):
            guard let loops = table.loops(of: node) else { break }
            book.forgetAttendance(ofLoops: loops, at: now)
            askWhoIsPresent(owned, holds: false)
            lookForPushes()
        case .restarted:
            askWhoIsPresent(owned, holds: false)
            lookForPushes()
        case .reports(let node, let loop, let reports):
            guard let loops = table.loops(of: node), loop < loops.count else { break }
            for report in reports {
                if let known = self.word(report, of: node) { await give(.report(loop: loops.lowerBound + loop, known)) }
            }
        case .publish(let publish, let node):
            let isOwn = publish.requests.contains { $0.channels.contains { serves(publish.app, $0) } }
            let name = "\(node) \(publish.ticket)"
            guard isOwn, forwarded[name] == nil else { break }
            forwarded.set(true, for: name, now: now.monotonic)
            await take(publish, of: node)
        case .wasLetOut(let node, let number, let tickets):
            let loops = node == several.nodes.me ? 0..<service.ports.count : table.loops(of: node) ?? 0..<0
            book.wasLetOut(number, upTo: zip(loops, tickets).map { (loop: $0, ticket: $1) }, at: now)
        case .heard(let node, let round, let newcomers):
            if let loops = table.loops(of: node) {
                await give(.heard(round: round, source: loops.lowerBound, newcomers: newcomers))
            }
        case .attended(let node, let round):
            if let place = takeovers.firstIndex(where: { $0.round == round }) { takeovers[place].awaited.remove(node) }
            await read()
        case .attendedNoMore(let round):
            if let place = takeovers.firstIndex(where: { $0.round == round }) { takeovers[place].awaited = [] }
            await read()
        case .order(let order, let done):
            await take(order)
            done()
        case .presence(let app, let channel, let users, let answer):
            guard serves(app, channel) else { break }
            if let place = takeovers.firstIndex(where: { $0.partitions.contains(app: app, channel: channel) }),
                takeovers[place].held.count < DeliveryBook.waitingMax
            {
                takeovers[place].held.append(.word(word))
            } else {
                answer(presence(app: app, channel: channel, users: users, me: several.nodes.me))
            }
        case .forecast(let forecast, let answer): await take(forecast, word, answer)
        case .pushes(let events): several.pushes.pick(events)
        case .keyed(let key, let publish, let part):
            remember(publish, part)
            answer(key, part)
        case .owned(let partitions, let done):
            await own(partitions)
            done()
        case .taken(let round):
            guard let place = takeovers.firstIndex(where: { $0.round == round }) else { break }
            let takeover = takeovers.remove(at: place)
            for arrival in takeover.arrivals { await read(arrival) }
            for held in takeover.held {
                switch held {
                case .forwarded(let publish, let node): await take(publish, of: node)
                case .command(let command): await take(command)
                case .word(let word): await take(word)
                }
            }
        }
    }

    /// Presence with the names of the nodes that have the connections.
    private func presence(app: String, channel: String, users: [String], me: UInt64) -> [String: ParticipantPresence] {
        book.presence(app: app, channel: channel, users: users, at: now).mapValues { presence in
            var presence = presence
            for place in presence.sockets.indices {
                let (node, loop) = table.remote(loop: presence.sockets[place].loop) ?? (me, presence.sockets[place].loop)
                (presence.sockets[place].node, presence.sockets[place].loop) = (node.hexDigits, loop)
            }
            return presence
        }
    }

    private func take(_ order: DeliveryMessage.AttendanceOrder) async {
        switch order {
        case .received(let receipt):
            guard serves(receipt.app, receipt.channel) else { return }
            service.counters.withLock { $0.received(.http) }
            await give(.received(receipt))
        case .deviceState(let app, let user, let device, let state, let keepsWorking):
            await give(.deviceState(app: app, user: user, device: device, state, keepsWorking: keepsWorking))
        case .signed(let socket, let app, let user, let device, let channel):
            guard let connection = SocketID(socket).flatMap(table.connection(of:)) else { return }
            await give(.signed(connection, socket: socket, app: app, user: user, device: device, channel: channel))
        case .removed(let app, let session, let definition, let users, let isOver):
            // The order may come late, from a node that was cut off. People who have joined again meanwhile stay.
            var gone = users
            if !isOver { for user in users where await isOnRoster(user, app, session) { gone.removeAll { $0 == user } } }
            guard isOver || !gone.isEmpty else { break }
            let session = Session(
                app: app, id: session, number: 0, definition: definition, joinCode: nil, attributes: [:], createdAt: 0)
            await give(.removed(session, users: gone, isOver: isOver))
        case .rosterChanged(let app, let session, let user): await give(.rosterChanged(app: app, session: session, user: user))
        }
    }

    /// False as well where the store does not answer.
    private func isOnRoster(_ user: String, _ app: String, _ session: String) async -> Bool {
        do { return try await service.directory.participant(app: app, session: session, user: user) != nil } catch { return false }
    }

    /// A report of another node's loop in delivery's words; nil: it is about a channel of another owner, or of an unknown app.
    private func word(_ report: NodeLoopReport, of node: UInt64) -> DeliveryBook.Report? {
        func named(_ connection: ConnectionID) -> ConnectionID? { table.known(connection, of: node)?.connection }
        switch report {
        case .attached(let connection, let app, let channel, let user, let isBrowser, let ticket):
            guard serves(app, channel), let app = service.apps.app(id: app), let known = table.known(connection, of: node) else {
                return nil
            }
            return .attached(
                known.connection, socket: known.socket.description, app: app.id, channel: channel, user: user, isBrowser: isBrowser,
                ticket: ticket, silenceMax: app.pingInterval + app.pongTimeout)
        case .present(let connection, let app, let channel, let user, let isBrowser, let ticket, let state, let keepsWorking):
            guard serves(app, channel), let app = service.apps.app(id: app), let known = table.known(connection, of: node) else {
                return nil
            }
            return .present(
                known.connection, socket: known.socket.description, app: app.id, channel: channel, user: user, isBrowser: isBrowser,
                ticket: ticket, silenceMax: app.pingInterval + app.pongTimeout, state: state, keepsWorking: keepsWorking)
        case .presentUpTo(let ticket): return .presentUpTo(ticket: ticket)
        case .detached(let connection, let channel): return named(connection).map { .detached($0, channel: channel) }
        case .state(let connection, let state, let keepsWorking):
            return named(connection).map { .state($0, state, keepsWorking: keepsWorking) }
        case .disconnected(let connection, let mayReturn):
            return table.known(connection, of: node).map {
                .disconnected($0.connection, socket: $0.socket.description, mayReturn: mayReturn)
            }
        case .pinged(let events, let cursor): return .pinged(events: events, cursor: cursor)
        case .proving(let event, let cursor): return .proving(event: event, cursor: cursor)
        case .replayed(let connection, let tokens, let cursor):
            return named(connection).map { .replayed($0, tokens: tokens, cursor: cursor) }
        case .receipt(let connection, let cursor): return named(connection).map { .receipt($0, cursor: cursor) }
        }
    }

    /// A node's words about committed pushes may be missing: what it committed for people of this node is in the store.
    private func lookForPushes() { several?.pushes.pick([]) }

    // MARK: Partitions

    private func own(_ partitions: PartitionSet) async {
        guard let several else { return }
        let (gained, lost) = (partitions.subtracting(owned), owned.subtracting(partitions))
        // Publishes that are decided go to the store first, which refuses those of another owner.
        await carryOut(book.commit(at: now))
        owned = partitions
        if !lost.isEmpty {
            for place in takeovers.indices { takeovers[place].partitions = takeovers[place].partitions.subtracting(lost) }
            await carryOut(book.keep { partitions.contains(app: $0, channel: $1) })
            await several.pushes.keep(partitions)
        }
        if !gained.isEmpty {
            // Whoever was on the former owner, or is on the way back to it, has not been seen here.
            book.wasAway(at: now)
            askWhoIsPresent(gained, holds: true)
        }
    }

    /// - Parameter holds: publishes to the channels wait for the answers, and open events are read from the store.
    private func askWhoIsPresent(_ partitions: PartitionSet, holds: Bool) {
        guard let several, !partitions.isEmpty else { return }
        lastRound += 1
        let round = lastRound
        // A beat of a node that has just greeted may not have been seen yet.
        let awaited = several.nodes.living.union(table.names)
        if holds { takeovers.append(Takeover(round: round, partitions: partitions, awaited: awaited)) }
        several.nodes.attend(round, partitions)
        guard holds else { return }
        Task { [service] in
            try? await Task.sleep(for: Takeover.attendedWithin)
            service.post(.attendedNoMore(round: round))
        }
    }

    /// Reads the open events of partitions where everybody's presence is known.
    private func read() async {
        for place in takeovers.indices where takeovers[place].awaited.isEmpty && !takeovers[place].isReading {
            takeovers[place].isReading = true
            let (round, partitions, isAlone) = (takeovers[place].round, takeovers[place].partitions, table.isEmpty)
            reading = Task { [service, before = reading] in
                await before?.value
                await service.read(partitions, of: round, isAlone: isAlone)
            }
        }
    }

    // MARK: Publishes

    /// Decides about an event that another node asks about.
    private func take(
        _ forecast: ForwardedForecast, _ word: DeliveryService.NodeWord, _ answer: @escaping @Sendable (ForecastAnswer) -> Void
    ) async {
        guard serves(forecast.app, forecast.channel), let app = service.apps.app(id: forecast.app),
            let channel = ChannelName(allowingServerToUser: forecast.channel)
        else { return }
        let request = PublishRequest(name: forecast.name, channels: [channel], data: forecast.data, excludedSocketID: forecast.excluded)
        if hold(app.id, [request], .word(word)) { return }
        await take(
            PublishCommand(app: app, requests: [request], purpose: .forecast) { result in
                switch result {
                case .success(let outcomes): if let decided = outcomes.first?.forecasts.first { answer(.decided(decided)) }
                case .failure(let refusal): answer(.refused(refusal))
                }
            })
    }

    private func take(_ publish: ForwardedPublish, of node: UInt64) async {
        guard let several, let app = service.apps.app(id: publish.app) else { return }
        var share = ForwardedShare(of: publish, owned)
        if share.requests.isEmpty || hold(app.id, share.requests, .forwarded(publish, of: node)) { return }
        let ticket = publish.ticket
        let key = publish.key.map { "\(app.id) \($0)" }
        var published: [ForwardedShare.Published] = []
        if let key {
            guard keyed.ask(key, .init(node: node, ticket: ticket)) else { return }
            do { published = try await self.published(share, of: publish) } catch {
                let refusal = error as? PublishRefusal ?? DeliveryBook.notStored
                return answer(key, .refused(share.places.flatMap { $0 }, refusal))
            }
            if !published.isEmpty { share = ForwardedShare(of: publish, owned, without: published) }
            if share.requests.isEmpty { return answer(key, .taken(published)) }
        }
        var command = PublishCommand(app: app, requests: share.requests) { [share, published, service] result in
            let part: PublishedPart
            switch result {
            case .failure(let refusal): part = .refused(share.places.flatMap { $0 }, refusal)
            case .success(let outcomes): part = .taken(published + share.published(outcomes))
            }
            guard let key else { return several.nodes.answer(node, ticket, part) }
            service.post(.keyed(key, publish, part))
        }
        if let key = publish.key {
            command.answers = { [share, wall = now.wall] outcomes in
                share.published(outcomes).map { place in
                    KeyedPlace(publish, key: key, request: place.request, channel: place.channel).record(event: place.event, at: wall)
                }
            }
        }
        command.ids = share.ids
        command.mayBeKnown = publish.mayBeKnown || share.ids.contains { rowsTaken[$0.text] != nil }
        await take(command)
    }

    /// Remembers what has just been published, for those who ask later.
    private func remember(_ publish: ForwardedPublish, _ part: PublishedPart) {
        guard let key = publish.key, case .taken(let channels) = part else { return }
        for channel in channels {
            let place = KeyedPlace(publish, key: key, request: channel.request, channel: channel.channel)
            keyed.remember(place, event: channel.event, now: now.monotonic)
        }
    }

    /// Answers everybody who asked under the key meanwhile.
    private func answer(_ key: String, _ part: PublishedPart) {
        for asker in keyed.finish(key) { several?.nodes.answer(asker.node, asker.ticket, part) }
    }

    /// The channels that this node or a former owner has published under the key. Former owners commit nothing after this look, because
    /// the fence fails it.
    private func published(_ share: ForwardedShare, of publish: ForwardedPublish) async throws -> [ForwardedShare.Published] {
        guard let key = publish.key else { return [] }
        let since = now.wall - AnswerRecord.lifeMilliseconds
        let places = share.places.flatMap { $0 }.map { place in
            (place: place, keyed: KeyedPlace(publish, key: key, request: place.request, channel: place.channel))
        }
        let at = now.monotonic
        let known = places.compactMap { place, keyed in
            self.keyed.event(of: keyed, now: at).map { (request: place.request, channel: place.channel, event: $0) }
        }
        if known.count == places.count { return known }
        return try await withThrowingTaskGroup(of: ForwardedShare.Published?.self) { [store = service.store] group in
            for (place, keyed) in places {
                group.addTask { try await keyed.published(store, since: since).map { (place.request, place.channel, $0) } }
            }
            return try await group.reduce(into: []) { if let published = $1 { $0.append(published) } }
        }
    }

    /// - Returns: whether the publish waits for a takeover.
    func hold(_ app: String, _ requests: [PublishRequest], _ held: Takeover.Held) -> Bool {
        let place = takeovers.firstIndex { takeover in
            requests.contains { $0.channels.contains { takeover.partitions.contains(app: app, channel: $0.text) } }
        }
        guard let place else { return false }
        // The sender leaves a publish without an answer to the store.
        if takeovers[place].held.count < DeliveryBook.waitingMax { takeovers[place].held.append(held) }
        return true
    }

    /// - Returns: whether the replay waits for a takeover. A replay beyond the bound is not sent.
    func hold(_ arrival: Arrival) async -> Bool {
        guard let place = takeovers.firstIndex(where: { $0.partitions.contains(app: arrival.app, channel: arrival.channel) }) else {
            return false
        }
        if takeovers[place].arrivals.count < Replayer.waitingMax {
            takeovers[place].arrivals.append(arrival)
        } else {
            await give(.replay(.nothing(arrival)))
        }
        return true
    }

    /// Takes out of a publish what an earlier try has published.
    /// - Returns: nil: all of it, and it is answered.
    func withoutKnown(_ command: PublishCommand) async -> PublishCommand? {
        var known: [String: String] = [:]
        do {
            for (request, id) in zip(command.requests, command.ids) {
                for channel in request.channels where service.isDefined(channel) {
                    let event = id.event(channel.text)
                    if try await service.store.event(id: event) != nil { known["\(id.text) \(channel.text)"] = event }
                }
            }
            if known.isEmpty { return command }
            let found = known
            @Sendable func outcomes(_ fresh: [PublishOutcome]) -> [PublishOutcome] {
                let ids = Dictionary(
                    fresh.flatMap(\.events).map { ($0.channel.text, $0.id) }, uniquingKeysWith: { first, _ in first })
                return zip(command.requests, command.ids).map { request, id in
                    PublishOutcome(
                        events: request.channels.compactMap { channel in
                            (found["\(id.text) \(channel.text)"] ?? ids[channel.text]).map { (channel, $0) }
                        })
                }
            }
            var (requests, ids) = ([PublishRequest](), [PublishID]())
            for (request, id) in zip(command.requests, command.ids) {
                let channels = request.channels.filter { known["\(id.text) \($0.text)"] == nil }
                if channels.isEmpty { continue }
                requests.append(
                    PublishRequest(
                        name: request.name, channels: OneOrMany(channels), data: request.data, excludedSocketID: request.excludedSocketID))
                ids.append(id)
            }
            guard requests.isEmpty else {
                let respond = command.respond
                var rest = PublishCommand(app: command.app, requests: requests, purpose: command.purpose) { result in
                    respond(result.map(outcomes))
                }
                if let answers = command.answers { rest.answers = { answers(outcomes($0)) } }
                rest.ids = ids
                return rest
            }
            if case .scheduled(let id) = command.purpose {
                let take = ScheduledTake(id: id, at: now.wall, events: known.values.sorted())
                _ = try await service.store.commit([], answers: [], scheduled: [take])
            }
            command.respond(.success(outcomes([])))
        } catch ScheduleError.notWaiting {
            command.respond(.failure(.notWaiting))
        } catch {
            command.respond(.failure(DeliveryBook.notStored))
        }
        return nil
    }

    // MARK: Effects

    /// Sends an event to the subscribers on all nodes.
    func letOut(_ release: DeliveryBook.Release, app: String, channel: String, name: String, data: DataLiteral, isAgain: Bool) {
        guard let several else { return }
        lastSerial += 1
        var excluded: SocketID?
        if let command = commands[release.publish] { excluded = command.requests[release.request].excludedSocketID }
        let event = ReleasedEvent(
            app: app, channel: channel, name: name, data: data, eventID: release.eventID, roles: names(release.roles, of: channel),
            attendedUpTo: release.attendedUpTo.map { table.byNode($0, me: several.nodes.me) }, receipt: release.receipt,
            excluded: excluded, isAgain: isAgain, serial: lastSerial)
        several.nodes.send(.event(event)) {
            // A node that has stood still may have a successor, which lets the event out.
            if !$0, several.nodes.ownedNow.contains(app: app, channel: channel) { several.nodes.letOutAlone(event) }
        }
    }

    /// Nil: everybody.
    private func names(_ roles: RoleSet, of channel: String) -> [String?]? {
        guard roles != .everybody, let definition = book.definitions.match(channel: channel)?.definition else { return nil }
        let named = definition.roles.filter { roles.isSuperset(of: RoleSet(role: $0, in: definition)) }
        return roles.isSuperset(of: .unmatched) ? named + [nil] : named
    }

    func prove(_ event: UInt64, _ connections: [ConnectionID]) {
        for (node, connections) in Dictionary(grouping: connections.compactMap(table.remote), by: \.node) {
            several?.nodes.send(.connections(node: node, .prove(event: event, connections.map(\.connection))))
        }
    }

    func assign(_ roles: RoleSet, to connection: ConnectionID, on channel: String) {
        guard let remote = table.remote(connection) else { return }
        let names = roles == .unmatched ? nil : names(roles, of: channel)?.compactMap { $0 }
        several?.nodes.send(.connections(node: remote.node, .roles(remote.connection, channel: channel, names)))
    }

    func replay(_ token: UInt64, _ replay: Replay, _ frames: [UInt8]) async {
        let connection = replay.arrival.connection
        guard let several, let remote = table.remote(connection), frames.count < Self.replayBytesMax else {
            return await give(.report(loop: connection.loop, .replayed(connection, tokens: [token], cursor: 0)))
        }
        let work = DeliveryMessage.ConnectionWork.replay(
            remote.connection, channel: replay.arrival.channel, token: token, frames: frames)
        several.nodes.send(.connections(node: remote.node, work))
    }

    /// Bytes of a replay to another node, which have to fit one message. Clients fetch the events of a longer one.
    private static let replayBytesMax = 1_000_000
}
