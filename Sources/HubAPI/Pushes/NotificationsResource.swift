internal import HubCore
internal import HubCrypto
internal import HubDefinitions
internal import HubDelivery
internal import PusherProtocol

/// `POST /apps/{app}/notifications`: a push to users, tokens, a topic or a condition, without a channel and a definition.
///
/// The pushes are committed with the answer, as an event of a channel without subscribers, before the answer goes out.
/// Afterwards they are sent like all other pushes.
struct NotificationsResource: Sendable {
    let store: any DeliveryStore
    let directory: any PeopleStore
    let pushes: any PushQueue
    let answers: AnswerBook
    let time: any TimeSource
    /// Environment of APNs tokens without one.
    let defaultEnvironment: APNsEnvironment
    let tokenAge: TokenAge

    /// Unreachable users named in an answer, which counts all of them.
    static let namedMax = 1_000
    /// Attempts if other requests with the same `once` key interfere between reading and writing.
    private static let onceAttemptsMax = 5

    func respond(to request: HTTPRequest, app: App) async throws -> HTTPResponse {
        guard request.method == "POST" else { throw APIError.methodNotAllowed(request.method, allowed: ["POST"]) }
        guard let text = request.headers["idempotency-key"] else {
            return try await send(try DirectRequest(request.body, environment: defaultEnvironment), app: app.id, claim: nil)
        }
        guard let key = IdempotencyKey(text, app: app.id) else { throw APIError(400, IdempotencyKey.rule) }
        return await withCheckedContinuation { done in
            answers.once(key, digest: IdempotencyKey.digest(of: request), later: LateAnswer { done.resume(returning: $0) }) { claim in
                Task {
                    do {
                        claim.finish(
                            try await send(try DirectRequest(request.body, environment: defaultEnvironment), app: app.id, claim: claim))
                    } catch {
                        claim.finish(APIError(answering: error).response)
                    }
                }
            }
        }
    }

    private func send(_ direct: DirectRequest, app: String, claim: AnswerClaim?) async throws -> HTTPResponse {
        for _ in 0..<Self.onceAttemptsMax {
            let planned = try await plan(direct, app: app)
            let response = HTTPResponse.json(.object(planned.answer))
            if direct.isTrial { return response }
            do {
                let events = try await store.commit(planned.commit.map { [$0] } ?? [], answers: claim.map { [$0.record(response)] } ?? [])
                let due = (planned.commit?.deliveries ?? []).filter { $0.state == .due }.map { delivery in
                    var delivery = delivery
                    delivery.message?.sequence = events.first?.sequence ?? 0
                    return delivery
                }
                if !due.isEmpty { await pushes.enqueue(due) }
                return response
            } catch is AlreadySent {
                continue
            }
        }
        throw APIError(503, "others are sending to the same users under this once key: try again in a moment")
    }

    /// The commit and the answer.
    private struct Plan {
        /// Nil: nothing is sent.
        var commit: EventCommit?
        var answer: [String: JSONValue]
    }

    private func plan(_ direct: DirectRequest, app: String) async throws -> Plan {
        let now = time.wallMilliseconds
        let event = EventRecord(
            id: EventID.make(wallMilliseconds: now, random: SecureRandom.bytes(EventID.randomByteCount)), app: app,
            channel: DirectSend.channel, name: DirectSend.event, data: direct.eventData, policy: direct.policy, committedAt: now,
            expiresAt: now + direct.ttlMilliseconds)
        switch direct.targets {
        case .users(let users): return try await plan(direct, event, users: users)
        case .addresses(let addresses):
            let deliveries = addresses.map { name, address in
                let nid = DirectSend.nid(event: event.id, app: app, address: name)
                return PushRecord(
                    nid: nid, event: event.id, app: app, user: "", device: name, state: .due, reason: direct.policy.rawValue, dueAt: now,
                    message: direct.message(nid: nid, of: event), address: address)
            }
            return Plan(commit: EventCommit(event, deliveries), answer: answer(direct, event, devices: deliveries.count))
        }
    }

    private func plan(_ direct: DirectRequest, _ event: EventRecord, users: [String]) async throws -> Plan {
        let app = event.app
        let sent = if let once = direct.once { try await store.sentOnce(app: app, key: once, users: users) } else { Set<String>() }
        let users = users.filter { !sent.contains($0) }
        let devices = try await directory.devices(app: app, users: users)
        var deliveries: [PushRecord] = []
        var notes: [RecipientNote] = []
        var unreachable: [String] = []
        for user in users {
            let own = devices[user] ?? []
            let usable = Decision.usableDevices(tokenAge.worthTrying(own, for: direct.policy, now: event.committedAt))
            let nid = NotificationID.make(event: event.id, app: app, user: user)
            func delivery(_ device: Device?, _ state: PushState, _ reason: String, _ message: PushMessage?) -> PushRecord {
                PushRecord(
                    nid: nid, event: event.id, app: app, user: user, device: device?.id ?? "", state: state, reason: reason,
                    dueAt: event.committedAt, message: message, route: device?.route)
            }
            notes.append(RecipientNote(state: nil, choice: usable.isEmpty ? .unreachable(own) : .pushed))
            if usable.isEmpty {
                unreachable.append(user)
                deliveries.append(delivery(nil, .undeliverable, Decision.unreachability(own, now: event.committedAt), nil))
            } else {
                let message = direct.message(nid: nid, of: event)
                deliveries += usable.map { delivery($0, .due, direct.policy.rawValue, message) }
            }
        }
        var answer = answer(direct, users.isEmpty ? nil : event, devices: deliveries.count { $0.state == .due })
        answer["unreachable"] = .array(unreachable.prefix(Self.namedMax).map(JSONValue.string))
        answer["unreachable_count"] = .int(Int64(unreachable.count))
        if direct.once != nil { answer["skipped"] = .int(Int64(sent.count)) }
        guard !users.isEmpty else { return Plan(commit: nil, answer: answer) }
        // An unreachable user may be notified another time.
        let missed = Set(unreachable)
        let once = direct.once.map { OnceKey(key: $0, users: users.filter { !missed.contains($0) }) }
        let recipients = RecipientOpening(snapshot: RecipientSnapshot(users: users), notes: notes)
        return Plan(commit: EventCommit(event, deliveries, recipients: recipients, once: once), answer: answer)
    }

    private func answer(_ direct: DirectRequest, _ event: EventRecord?, devices: Int) -> [String: JSONValue] {
        let id = direct.isTrial ? nil : event?.id
        var answer: [String: JSONValue] = ["event_id": JSONValue(orNull: id), "devices": .int(Int64(devices))]
        if direct.isTrial { answer["validate_only"] = true }
        return answer
    }
}
