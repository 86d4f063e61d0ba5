package import HubCore
internal import HubDefinitions

/// From a publish to its frames and pushes: decided, committed, and only then let out.
extension DeliveryBook {
    mutating func take(_ publish: Publish, _ answer: Answer, at now: Moment) -> [Effect] {
        if change != nil {
            return change?.hold(publish) == true ? [] : [.respond(publish.id, .failure(Self.tooManyWaiting))]
        }
        var inputs: [EventInput] = []
        switch answer {
        case .refused(let refusal): return [.respond(publish.id, .failure(refusal))]
        case .events(let read): inputs = read
        default: break
        }
        do throws(PublishRefusal) {
            let decided = try prepare(publish, inputs, at: now)
            switch publish.purpose {
            case .publish, .scheduled: prepared.append(decided)
            case .trial: return [.respond(publish.id, .success(decided.outcomes))]
            case .forecast: return [.forecast(publish.id, decided.forecasts)]
            }
        } catch {
            return [.respond(publish.id, .failure(error))]
        }
        return prepared.count >= Self.commitMax ? commit(at: now) : []
    }

    private mutating func prepare(
        _ publish: Publish, _ inputs: [EventInput], at now: Moment
    ) throws(PublishRefusal) -> PreparedPublish {
        var prepared = PreparedPublish(publish)
        var inputs = inputs[...]
        for (number, request) in publish.requests.enumerated() {
            var outcome: [String?] = []
            for (place, channel) in request.channels.enumerated() {
                var release = Release(publish: publish.id, request: number, channel: place, excluded: request.excluded)
                if let (definition, placeholders) = definitions.match(channel: channel), let event = definition.events[request.name] {
                    guard let input = inputs.popFirst() else { preconditionFailure("an event of \(channel) came without its input") }
                    let decided = try decide(event, input, channel: channel, excluded: request.excluded, at: now)
                    release.roles = decided.roles
                    if publish.purpose == .forecast {
                        prepared.add(
                            forecast(
                                decided, channel: channel, definition: definition, audience: input.audience, room: prepared.room))
                    } else if let record = decided.event, publish.purpose.isReal {
                        noteDecided(record)
                        release.attendedUpTo = attendedUpTo
                        release.eventID = record.id
                        let context = PushContext(
                            record: record, readAt: now, definition: definition, event: event, placeholders: placeholders,
                            data: input.data)
                        try add(decided, context, to: &prepared, &release, at: now)
                    }
                } else if publish.purpose == .forecast {
                    prepared.add(EventForecast(channel: channel, definition: definitions.match(channel: channel)?.definition.name))
                }
                outcome.append(release.eventID)
                prepared.releases.append(release)
            }
            prepared.outcomes.append(outcome)
        }
        return prepared
    }

    /// Adds the rows that are committed with the event, and the targets that are awaited afterwards.
    private mutating func add(
        _ decided: Decided, _ context: PushContext, to prepared: inout PreparedPublish, _ release: inout Release, at now: Moment
    ) throws(PublishRefusal) {
        let record = context.record
        guard escalation.hasRoom(forTargets: decided.targets.count) else { throw Self.tooManyOpen }
        if !decided.targets.isEmpty || !decided.unseen.isEmpty { release.receipt = nextNumber() }
        if let number = release.receipt, !decided.targets.isEmpty {
            let opening = Escalation.Opening(
                number: number, event: record.id, app: record.app, channel: record.channel, attendedUpTo: attendedUpTo,
                targets: decided.targets)
            prepared.openings.append((opening, context))
        }
        if let number = release.receipt, !decided.unseen.isEmpty {
            unseenPushes.decided(
                number, event: record.id, app: record.app, channel: record.channel, attendedUpTo: attendedUpTo, recipients: decided.unseen,
                now: now.monotonic)
        }
        let recipients =
            decided.recipients.isEmpty ? nil : RecipientOpening(snapshot: snapshot(of: decided.recipients), notes: decided.notes)
        prepared.records.append(EventCommit(record, decided.deliveries, recipients: recipients))
    }

    /// A subscription from now on was not written the event, and is replayed it.
    private mutating func noteDecided(_ event: EventRecord) {
        if justDecided.at != event.committedAt { justDecided = (event.committedAt, []) }
        justDecided.events.insert(event.id)
    }

    // MARK: Commit

    /// The decided publishes, for one transaction; nothing without any.
    package mutating func commit(at now: Moment) -> [Effect] {
        assert(!isCommitting, "one commit at a time")
        guard !prepared.isEmpty else { return [] }
        let batch = Batch(publishes: prepared, takes: prepared.compactMap { $0.take(at: now.wall) })
        prepared = []
        isCommitting = true
        return [.commit(batch)]
    }

    /// Takes the outcome of a commit: frames to the loops, answers to the publishers, pushes to the outbox.
    /// - Parameter result: the events with their sequences.
    package mutating func committed(
        _ batch: Batch, _ result: Result<[EventRecord], CommitFailure>, at now: Moment
    ) -> [Effect] {
        assert(isCommitting, "a commit ends once")
        isCommitting = false
        switch result {
        case .success(let events): return letOut(batch, events, at: now)
        case .failure(.store): return batch.publishes.map { .respond($0.publish.id, .failure(Self.notStored)) }
        case .failure(.notWaiting(let ids)):
            // Cancelled after the read; the other publishes are independent.
            var effects: [Effect] = []
            for publish in batch.publishes {
                if case .scheduled(let id) = publish.publish.purpose, ids.contains(id) {
                    effects.append(.respond(publish.publish.id, .failure(.notWaiting)))
                } else {
                    prepared.append(publish)
                }
            }
            guard !effects.isEmpty else {
                prepared = []
                return batch.publishes.map { .respond($0.publish.id, .failure(Self.notStored)) }
            }
            return effects + commit(at: now)
        }
    }

    private mutating func letOut(_ batch: Batch, _ events: [EventRecord], at now: Moment) -> [Effect] {
        var effects: [Effect] = []
        for publish in batch.publishes {
            for (opening, context) in publish.openings {
                escalation.open(opening, now: now.monotonic)
                effects.append(.plan(.opened(context)))
            }
            for release in publish.releases { effects.append(.letOut(release)) }
            effects.append(.respond(publish.publish.id, .success(publish.outcomes)))
        }
        let sequences = Dictionary(events.map { ($0.id, $0.sequence) }, uniquingKeysWith: { first, _ in first })
        var due: [PushRecord] = []
        for publish in batch.publishes {
            for record in publish.records {
                let sequence = sequences[record.event.id] ?? 0
                for var push in record.deliveries where push.state == .due {
                    push.sequence = sequence
                    due.append(push)
                }
            }
        }
        if !due.isEmpty { effects.append(.push(due)) }
        return effects
    }

    // MARK: Refusals

    package static let notStored = PublishRefusal(
        status: 503, sentence: "the event could not be stored and was not sent: try again in a moment")
    static let tooManyWaiting = PublishRefusal(status: 503, sentence: "too many publishes are waiting: try again in a moment")
    static let tooManyOpen = PublishRefusal(
        status: 503, sentence: "too many events wait for their receipts: publish more slowly, or to smaller sessions; nothing was sent")
}
