internal import HubAPI
internal import HubChannels
internal import HubCore
internal import HubCrypto
internal import HubDelivery
internal import Logging
internal import PusherProtocol
internal import Synchronization

/// From a publish to its frames and pushes: decided, committed, and only then let out.
extension DeliveryService {
    func storeFailure(_ error: any Error) -> PublishRefusal {
        logger.error("a publish could not be stored", metadata: ["error": "\(error)"])
        return PublishRefusal(status: 503, sentence: "the event could not be stored and was not sent: try again in a moment")
    }

    func prepare(_ command: PublishCommand, _ desk: inout DecisionDesk) async throws -> PreparedPublish {
        var prepared = PreparedPublish(command: command)
        let definitions = currentDefinitions
        for request in command.requests {
            let excluded = request.excludedSocketID.flatMap(process.connection(of:))
            var outcome = PublishOutcome(events: [])
            for channel in request.channels {
                var publication = Publication(
                    app: command.app.index, frames: [], excluded: excluded, cacheOrder: channel.kind.isCache ? apps.nextOrder() : nil,
                    arrivedAt: command.arrivedAt, way: .stored)
                var eventID: String?
                if let (definition, placeholders) = definitions.match(channel: channel.text), let event = definition.events[request.name] {
                    let audience = try await escalator.reader.audience(app: command.app.id, definition, placeholders, event)
                    let decided = try desk.decide(
                        event, request: request, channel: channel, audience: audience, excluded: excluded, now: time.wallMilliseconds,
                        monotonic: now, random: SecureRandom.bytes(EventID.randomByteCount))
                    publication.audience = decided.roles
                    // What is for some roles only must not meet whoever subscribes next.
                    if decided.roles != .everybody { publication.cacheOrder = nil }
                    if let record = decided.event, command.purpose != .trial {
                        desk.noteDecided(record)
                        publication.attendedUpTo = desk.attendedUpTo
                        eventID = record.id
                        outcome.events.append((channel, record.id))
                        let context = PushContext(
                            record: record, definition: definition, event: event, placeholders: placeholders,
                            data: request.data.contentValue ?? .null)
                        try add(decided, context, attendedUpTo: desk.attendedUpTo, to: &prepared, &publication, &desk)
                    }
                }
                let frame = ServerEvent.event(name: request.name, channel: channel, data: request.data, eventID: eventID)
                publication.frames = [ChannelFrame(channel, Frame.text(frame))]
                prepared.publications.append(publication)
            }
            prepared.outcomes.append(outcome)
        }
        prepared.answer = command.answer?(prepared.outcomes)
        return prepared
    }

    /// What has to be committed with the event, and whom it waits for afterwards.
    private func add(
        _ decided: DecisionDesk.Decided, _ context: PushContext, attendedUpTo: [UInt64], to prepared: inout PreparedPublish,
        _ publication: inout Publication, _ desk: inout DecisionDesk
    ) throws(PublishRefusal) {
        let record = context.record
        guard desk.escalation.hasRoom(forTargets: decided.targets.count) else {
            throw PublishRefusal(
                status: 503,
                sentence: "too many events wait for their receipts: publish more slowly, or to smaller sessions; nothing was sent")
        }
        if !decided.targets.isEmpty {
            let number = desk.nextNumber()
            publication.receipt = number
            prepared.openings.append(
                (
                    Escalation.Opening(
                        number: number, event: record.id, app: record.app, channel: record.channel, attendedUpTo: attendedUpTo,
                        targets: decided.targets), context
                ))
        }
        let recipients =
            decided.recipients.isEmpty ? nil : RecipientOpening(snapshot: desk.snapshot(of: decided.recipients), notes: decided.notes)
        prepared.records.append(EventCommit(record, decided.deliveries, recipients: recipients))
    }

    /// Commits, then lets out: frames to the loops, pushes to the outbox, answers to the publishers.
    func commit(_ prepared: inout [PreparedPublish], _ desk: inout DecisionDesk) async {
        guard !prepared.isEmpty else { return }
        let batch = prepared
        prepared = []
        var events: [EventRecord] = []
        let records = batch.flatMap(\.records)
        let answers = batch.compactMap(\.answer)
        let takes = batch.compactMap { $0.take(at: time.wallMilliseconds) }
        if !records.isEmpty || !answers.isEmpty || !takes.isEmpty {
            do {
                events = try await store.commit(records, answers: answers, scheduled: takes)
            } catch ScheduleError.notWaiting(let ids) {
                // Cancelled since it was read; the others have nothing to do with it.
                prepared = batch.filter { publish in !ids.contains { publish.command.purpose == .scheduled(id: $0) } }
                guard prepared.count < batch.count else { return refuse(&prepared, storeFailure(ScheduleError.notWaiting(ids))) }
                for publish in batch {
                    if case .scheduled(let id) = publish.command.purpose, ids.contains(id) {
                        publish.command.respond(.failure(.notWaiting))
                    }
                }
                return await commit(&prepared, &desk)
            } catch {
                prepared = batch
                return refuse(&prepared, storeFailure(error))
            }
        }
        figures.withLock { $0.committed(batch) }
        for publish in batch {
            for (opening, context) in publish.openings {
                desk.escalation.open(opening, now: now)
                escalator.post(.opened(context))
            }
            for publication in publish.publications {
                for loop in 0..<ports.count { ports.post(.publish(publication), to: loop) }
            }
            publish.command.respond(.success(publish.outcomes))
        }
        let sequences = Dictionary(events.map { ($0.id, $0.sequence) }, uniquingKeysWith: { first, _ in first })
        var due: [PushRecord] = []
        for record in records {
            let sequence = sequences[record.event.id] ?? 0
            for var delivery in record.deliveries where delivery.state == .due {
                delivery.sequence = sequence
                due.append(delivery)
            }
        }
        if !due.isEmpty { await outbox.enqueue(due) }
        relief.committed(deliveries: due.count)
    }
}

extension DeliveryService {
    private func refuse(_ prepared: inout [PreparedPublish], _ refusal: PublishRefusal) {
        for publish in prepared { publish.command.respond(.failure(refusal)) }
        prepared = []
    }
}

/// A publish that has been decided and not yet committed.
struct PreparedPublish: Sendable {
    let command: PublishCommand
    var records: [EventCommit] = []
    /// Events whose receipts are awaited once they are committed.
    var openings: [(Escalation.Opening, PushContext)] = []
    var publications: [Publication] = []
    var outcomes: [PublishOutcome] = []
    /// Of a publish with an idempotency key.
    var answer: AnswerRecord?

    init(command: PublishCommand) {
        self.command = command
    }

    /// What ends the row of a publish that was scheduled.
    /// - Parameter time: milliseconds since 1970.
    func take(at time: Int64) -> ScheduledTake? {
        guard case .scheduled(let id) = command.purpose else { return nil }
        return ScheduledTake(id: id, at: time, events: records.map(\.event.id))
    }
}
