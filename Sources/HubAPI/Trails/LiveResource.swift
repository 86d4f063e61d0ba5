internal import HubCore
internal import HubDefinitions
internal import HubDelivery
internal import PusherProtocol

/// `GET /apps/{app}/live`: what happens at the moment, asked for again and again. A question waits until there is something.
struct LiveResource: Sendable {
    private let stream: LiveStream
    /// Name of this node; nil: there is one.
    private let node: @Sendable () -> String?
    /// Names of the nodes of which a listener is told nothing at the moment.
    private let missing: @Sendable (_ listener: UInt64) -> [String]

    /// Seconds that a question waits when it does not say, and at most.
    static let waitSecondsMax = 25
    /// Time between two looks of a question that waits. Facts gather meanwhile.
    private static let lookEvery: Duration = .milliseconds(100)

    init(
        _ stream: LiveStream, node: @escaping @Sendable () -> String?, missing: @escaping @Sendable (_ listener: UInt64) -> [String]
    ) {
        self.stream = stream
        self.missing = missing
        self.node = node
    }

    func respond(to request: HTTPRequest, app: String) async throws -> HTTPResponse {
        guard request.method == "GET" else { throw APIError.methodNotAllowed(request.method, allowed: ["GET", "HEAD"]) }
        let wait = try PageQuery(request: request).number(
            "wait", in: 0...Int64(Self.waitSecondsMax), otherwise: Int64(Self.waitSecondsMax))
        let filter = LiveFilter(
            app: app, channel: request.parameter("channel"), user: request.parameter("user"), kinds: try Self.kinds(request))
        let cursor = request.parameter("after")
        guard var page = stream.page(filter, after: cursor) else {
            let sentence = "\(LiveStream.listenersMax) are listening already: try again when one of them has stopped"
            throw APIError(429, sentence, headers: ["Retry-After": "5"])
        }
        guard cursor != nil else { return answer(page) }
        let end = ContinuousClock.now + .seconds(wait)
        while page.isEmpty, ContinuousClock.now < end, !stream.isClosed {
            try? await Task.sleep(for: Self.lookEvery)
            guard let next = stream.more(since: page, app: app) else { break }
            page = next
        }
        return answer(page)
    }

    private static func kinds(_ request: HTTPRequest) throws(APIError) -> Set<LiveFact.Kind> {
        guard let text = request.parameter("kind") else { return Set(LiveFact.Kind.allCases) }
        var kinds: Set<LiveFact.Kind> = []
        for word in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let kind = LiveFact.Kind(rawValue: String(word)) else {
                let known = LiveFact.Kind.allCases.map(\.rawValue).joined(separator: ", ")
                throw APIError(400, "kind \(APIError.quoted(String(word))) is unknown: use \(known)")
            }
            kinds.insert(kind)
        }
        return kinds
    }

    // MARK: Answer

    private func answer(_ page: LivePage) -> HTTPResponse {
        .json([
            "cursor": .string(page.cursor), "gap": .bool(page.isGap), "sampled": .int(Int64(clamping: page.skipped)),
            "node": JSONValue(orNull: node()), "missing": .array(missing(page.listener).map { .string($0) }),
            "items": .array(page.facts.map(Self.item)),
        ])
    }

    private static func item(_ fact: LiveFact) -> JSONValue {
        var members: [String: JSONValue] = [
            "at": .string(Timestamp.iso8601(milliseconds: fact.at)), "kind": .string(fact.detail.kind.rawValue),
            "channel": JSONValue(orNull: fact.channel), "user": JSONValue(orNull: fact.user),
        ]
        switch fact.detail {
        case .join(let socket): members["socket"] = .string(socket)
        case .leave(let socket): members["socket"] = JSONValue(orNull: socket)
        case .event(let name, let id, let policy, let recipients, let sequence):
            members["name"] = .string(name)
            members["event_id"] = JSONValue(orNull: id)
            members["policy"] = JSONValue(orNull: policy?.rawValue)
            members["recipients"] = recipients.map { .int(Int64($0)) } ?? .null
            members["sequence"] = sequence.map { .int($0) } ?? .null
        case .decision(let event, let note):
            members["event_id"] = .string(event)
            members["decision"] = .string(note.choice.word)
            members["known"] = JSONValue(orNull: note.state?.rawValue)
            members["why"] = .string(note.why)
        case .receipt(let event, let after):
            members["event_id"] = .string(event)
            members["receipt_ms"] = .int(after)
        case .push(let event, let nid, let device, let state, let answer, let attempt):
            members["event_id"] = .string(event)
            members["nid"] = .string(nid)
            members["device"] = .string(device)
            members["state"] = .string(state.rawValue)
            members["answer"] = JSONValue(orNull: answer)
            members["attempt"] = .int(Int64(attempt))
        }
        return .object(members)
    }
}
