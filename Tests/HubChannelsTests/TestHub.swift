import HubCore
import HubJSON
import HubTesting
import PusherProtocol
import Testing

@testable import HubChannels

extension SeededRandom {
    mutating func below(_ end: Int) -> Int { Int(next() % UInt64(end)) }
}

/// One client: what it was sent, and what a library would make of it. Judges every frame by the rules that hold for all.
final class TestClient {
    let id: ConnectionID
    private(set) var texts: [String] = []
    private(set) var frames: [JSONValue] = []
    private(set) var closeCode: UInt16?
    private(set) var silenceWatches = 0
    /// Channels it has an acknowledgement of, and the members it believes to be there.
    private(set) var members: [String: Set<String>] = [:]
    /// Frames that break a rule of docs/protocol.md, in words.
    private(set) var violations: [String] = []
    var isGone = false

    init(_ id: ConnectionID) {
        self.id = id
    }

    var socketID: String { frames.first.map { Self.data($0)["socket_id"]?.stringValue ?? "" } ?? "" }

    /// The `data` of a frame, parsed when it is a string that holds JSON.
    static func data(_ frame: JSONValue) -> JSONValue {
        guard let data = frame["data"] else { return .null }
        guard let text = data.stringValue else { return data }
        return (try? JSONValue(parsing: text)) ?? data
    }

    func named(_ event: String, on channel: String? = nil) -> [JSONValue] {
        frames.filter { $0["event"]?.stringValue == event && (channel == nil || $0["channel"]?.stringValue == channel) }
    }

    func acknowledgements(_ channel: String) -> Int { named("pusher_internal:subscription_succeeded", on: channel).count }

    var errors: [JSONValue] { named("pusher:error").map { $0["data"] ?? .null } }

    /// Changes of watched users that the client was told: `+7` came, `-8` went.
    var watched: [[String]] {
        named("pusher_internal:watchlist_events").map { frame in
            (Self.data(frame)["events"]?.arrayValue ?? []).flatMap { event in
                (event["user_ids"]?.arrayValue ?? []).map { (event["name"] == "online" ? "+" : "-") + ($0.stringValue ?? "?") }
            }
        }
    }

    /// Everything but the protocol's own: event names in order of arrival.
    func published(on channel: String) -> [String] {
        frames.filter { $0["channel"]?.stringValue == channel }.compactMap { $0["event"]?.stringValue }.filter { !$0.hasPrefix("pusher") }
    }

    func forget() {
        texts = []
        frames.removeSubrange(1...)
    }

    func left(_ channel: String) {
        members[channel] = nil
    }

    func silenceWatchBegan() { silenceWatches += 1 }

    /// Payloads of the PINGs it was sent, and what it had been sent before each.
    private(set) var pings: [(payload: [UInt8], after: Int)] = []

    func pinged(_ payload: [UInt8]) { pings.append((payload, frames.count)) }

    func closed(_ code: UInt16) {
        if closeCode != nil { violations.append("closed twice") }
        closeCode = code
    }

    func receive(_ text: String) {
        if isGone { violations.append("a frame for a connection that is gone: \(text)") }
        if closeCode != nil { violations.append("a frame behind the close: \(text)") }
        guard let frame = try? JSONValue(parsing: text), let event = frame["event"]?.stringValue else {
            violations.append("no event: \(text)")
            return
        }
        texts.append(text)
        frames.append(frame)
        judge(frame, event)
        guard let channel = frame["channel"]?.stringValue, event != "pusher:subscription_error" else { return }
        switch event {
        case "pusher_internal:subscription_succeeded":
            if members[channel] != nil { violations.append("a second acknowledgement of \(channel)") }
            let presence = Self.data(frame)["presence"]
            let ids = presence?["ids"]?.arrayValue?.compactMap(\.stringValue) ?? []
            if Set(ids).count != ids.count { violations.append("ids twice: \(ids)") }
            if let presence,
                presence["count"]?.intValue != Int64(ids.count) || Set(presence["hash"]?.objectValue?.keys.map { $0 } ?? []) != Set(ids)
            {
                violations.append("ids, hash and count differ: \(text)")
            }
            members[channel] = Set(ids)
        case "pusher_internal:member_added":
            let user = Self.data(frame)["user_id"]?.stringValue ?? ""
            if members[channel]?.insert(user).inserted != true {
                violations.append("\(user) added to \(channel) twice, or without acknowledgement")
            }
        case "pusher_internal:member_removed":
            let user = Self.data(frame)["user_id"]?.stringValue ?? ""
            if members[channel]?.remove(user) == nil { violations.append("\(user) removed from \(channel) without being there") }
        default:
            if members[channel] == nil { violations.append("\(event) on \(channel) without an acknowledgement") }
        }
    }

    /// C30: no null member, and the form of `data` (docs/protocol.md, 1.4).
    private func judge(_ frame: JSONValue, _ event: String) {
        for name in ["channel", "user_id"] where frame[name] != nil && frame[name]?.stringValue == nil {
            violations.append("\(name) is no string: \(frame.text)")
        }
        if event == "pusher:error" {
            let code = frame["data"]?["code"]
            if code?.intValue == nil && code != .null { violations.append("code is neither number nor null: \(frame.text)") }
            if frame["data"]?["message"]?.stringValue == nil { violations.append("no message: \(frame.text)") }
        } else if frame["data"]?.stringValue == nil {
            violations.append("data is no string: \(frame.text)")
        }
    }
}

/// One loop's connections: takes frames apart and hands them to the clients.
final class RecordingSink: DeliverySink {
    private(set) var clients: [UInt32: TestClient] = [:]
    /// Every call of `deliver`: whom, and how many bytes and frames.
    private(set) var deliveries: [(slots: [UInt32], bytes: Int, frames: Int, marked: [(event: String, line: UInt32)])] = []
    private(set) var violations: [String] = []

    func insert(_ client: TestClient) { clients[UInt32(client.id.slot)] = client }
    func remove(_ client: TestClient) { clients[UInt32(client.id.slot)] = nil }
    func forgetDeliveries() { deliveries = [] }

    func deliver(_ frames: UnsafeRawBufferPointer, to slots: UnsafeBufferPointer<UInt32>, latestOnly: UnsafeBufferPointer<LatestOnlyFrame>)
    {
        let units = Self.split(Array(frames))
        if units.isEmpty { violations.append("a delivery of nothing") }
        if Set(slots).count != slots.count { violations.append("a slot twice in one delivery") }
        let marked = latestOnly.map { mark in
            let frame = Frame.payload(of: UnsafeRawBufferPointer(rebasing: frames[mark.start..<mark.end]))
            return ((try? JSONValue(parsing: String(decoding: frame, as: UTF8.self)))?["event"]?.stringValue ?? "not a frame", mark.line)
        }
        deliveries.append((Array(slots), frames.count, units.count, marked))
        for slot in slots {
            guard let client = clients[slot] else {
                violations.append("delivery to slot \(slot), which nobody has")
                continue
            }
            for unit in units { unit.hand(to: client) }
        }
    }

    func send(_ frames: [UInt8], to connection: ConnectionID) {
        guard let client = clients[UInt32(connection.slot)], client.id == connection else { return }
        for unit in Self.split(frames) { unit.hand(to: client) }
    }

    func close(_ connection: ConnectionID, code: UInt16, reason: String) {
        guard let client = clients[UInt32(connection.slot)], client.id == connection else { return }
        client.closed(code)
    }

    func watchSilence(_ connection: ConnectionID, pingAfter: Duration, pongWithin: Duration) {
        clients[UInt32(connection.slot)]?.silenceWatchBegan()
    }

    private enum Unit {
        case text(String)
        case ping([UInt8])

        func hand(to client: TestClient) {
            switch self {
            case .text(let text): client.receive(text)
            case .ping(let payload): client.pinged(payload)
            }
        }
    }

    private static func split(_ bytes: [UInt8]) -> [Unit] {
        var units: [Unit] = []
        var index = 0
        while index < bytes.count {
            let isPing = bytes[index] == 0x89
            precondition(isPing || bytes[index] == 0x81, "not a whole frame")
            var length = Int(bytes[index + 1])
            index += 2
            if length >= 126 {
                let count = length == 126 ? 2 : 8
                length = bytes[index..<index + count].reduce(0) { $0 << 8 | Int($1) }
                index += count
            }
            let payload = bytes[index..<index + length]
            units.append(isPing ? .ping(Array(payload)) : .text(String(decoding: payload, as: UTF8.self)))
            index += length
        }
        return units
    }
}

/// Engines of several loops joined by queues that keep the order of each pair of loops and nothing else: what mailboxes
/// promise. Which message is handled next is drawn from a seed.
final class TestHub {
    static let key = "key"
    static let secret = "secret"

    let clock = ManualClock()
    let directory: AppDirectory
    private(set) var engines: [ChannelEngine] = []
    private(set) var sinks: [RecordingSink] = []
    private var queues: [[Int]: [EngineMessage]] = [:]
    var random: SeededRandom
    private var freeSlots: [Int: [(slot: Int, generation: UInt32)]] = [:]
    private var nextSlot: [Int: Int] = [:]
    private(set) var everybody: [TestClient] = []
    /// Channels that have a definition.
    var watched: Set<String>
    /// Traits of channels with a definition.
    var traits: (String) -> ChannelTraits = { _ in ChannelTraits() }
    /// Takes what engines report before they answer, in a hub that `isReporting`.
    var reporting: (([LoopReport]) -> Void)?

    init(
        loops: Int = 1, seed: UInt64 = 1, watched: Set<String> = [], limits: ConnectionLimits = ConnectionLimits(),
        writesPerPieceMax: Int = FanOut.writesPerPieceMax, isReporting: Bool = false,
        configure: (inout App) -> Void = { _ in }
    ) {
        random = SeededRandom(state: seed)
        self.watched = watched
        var app = App(index: 0, id: "1", secrets: [Self.key: Self.secret, "key2": "secret2"])
        configure(&app)
        var disabled = App(index: 1, id: "2", secrets: ["off": "x"])
        disabled.isEnabled = false
        let other = App(index: 2, id: "3", secrets: ["other": "other-secret"])
        directory = AppDirectory([app, disabled, other], limits: limits)
        for loop in 0..<loops {
            let sink = RecordingSink()
            sinks.append(sink)
            engines.append(
                ChannelEngine(
                    loop: loop, loopCount: loops, directory: directory, process: ProcessTag(random: 0xDEAD_BEEF_1234), sink: sink,
                    time: clock,
                    writesPerPieceMax: writesPerPieceMax,
                    traits: { [unowned self] in self.watched.contains($0.text) ? self.traits($0.text) : nil },
                    reporting: isReporting ? { [unowned self] in self.reporting?($0) } : nil,
                    post: { [unowned self] to, message in
                        precondition(to != loop, "a message to oneself")
                        queues[[loop, to], default: []].append(message)
                    }))
        }
    }

    // MARK: Connections

    /// A connection that says hello with that key; refused ones are returned as well.
    func open(
        _ loop: Int = 0, key: String? = TestHub.key, version: String? = "7", origin: String? = nil, client library: String? = nil,
        address: String = ""
    ) -> TestClient {
        let (slot, generation): (Int, UInt32)
        if let free = freeSlots[loop]?.popLast() {
            (slot, generation) = (free.slot, free.generation + 1)
        } else {
            (slot, generation) = (nextSlot[loop, default: 0], 1)
            nextSlot[loop] = slot + 1
        }
        let client = TestClient(ConnectionID(loop: loop, slot: slot, generation: generation))
        everybody.append(client)
        sinks[loop].insert(client)
        engines[loop].open(client.id, key: key, version: version, origin: origin, client: library) { address }
        return client
    }

    /// The connection is gone, as the transport reports it; its slot is used again.
    func close(_ client: TestClient, as departure: Departure = .abnormal) {
        let loop = client.id.loop
        // Waiting frames are still handed over; the transport drops frames for a connection that is gone.
        engines[loop].closed(client.id, as: departure)
        client.isGone = true
        sinks[loop].remove(client)
        freeSlots[loop, default: []].append((client.id.slot, client.id.generation))
    }

    /// Answers a PING of the server as a WebSocket stack does.
    func pong(_ client: TestClient, _ payload: [UInt8]) {
        payload.withUnsafeBytes { engines[client.id.loop].receivedPong($0, from: client.id) }
    }

    func say(_ client: TestClient, _ text: String) {
        say(client, Array(text.utf8))
    }

    func say(_ client: TestClient, _ bytes: [UInt8]) {
        bytes.withUnsafeBytes { engines[client.id.loop].received($0, from: client.id) }
    }

    func say(_ client: TestClient, event: String, channel: String? = nil, data: JSONValue?) {
        var members: [String: JSONValue] = ["event": .string(event)]
        if let channel { members["channel"] = .string(channel) }
        if let data { members["data"] = data }
        say(client, JSONValue.object(members).text)
    }

    /// Subscribes as a well-behaved client does, signed when the channel wants it.
    func subscribe(_ client: TestClient, _ channel: String, user: JSONValue? = nil, info: JSONValue? = nil) {
        var data: [String: JSONValue] = ["channel": .string(channel)]
        if channel.hasPrefix("private-") || channel.hasPrefix("presence-") {
            var channelData: String?
            if let user {
                var member: [String: JSONValue] = ["user_id": user]
                member["user_info"] = info
                channelData = JSONValue.object(member).text
                data["channel_data"] = .string(channelData ?? "")
            }
            data["auth"] = .string(auth(client, channel, channelData))
        }
        say(client, event: "pusher:subscribe", data: .object(data))
    }

    func auth(
        _ client: TestClient, _ channel: String, _ channelData: String? = nil, key: String = TestHub.key, secret: String = TestHub.secret
    ) -> String {
        guard let socketID = SocketID(client.socketID) else { return "" }
        return SubscriptionAuth.sign(socketID: socketID, channel: channel, channelData: channelData, key: key, secret: secret)
    }

    /// Signs in as a backend would let it.
    func signIn(_ client: TestClient, _ userData: String, secret: String = TestHub.secret) {
        guard let socketID = SocketID(client.socketID) else { return }
        let auth = SubscriptionAuth.signUser(socketID: socketID, userData: userData, key: Self.key, secret: secret)
        say(client, event: "pusher:signin", data: ["auth": .string(auth), "user_data": .string(userData)])
    }

    func signIn(_ client: TestClient, id: String, watchlist: [String] = []) {
        signIn(client, JSONValue.object(["id": .string(id), "watchlist": .array(watchlist.map(JSONValue.string))]).text)
    }

    /// Facts for webhooks since the last call, channel by channel in order.
    func takeFacts() -> [ChannelFact] { engines.flatMap { $0.takeFacts() } }

    func unsubscribe(_ client: TestClient, _ channel: String) {
        say(client, event: "pusher:unsubscribe", data: ["channel": .string(channel)])
        client.left(channel)
    }

    /// Publishes as the HTTP API does.
    func publish(
        _ event: String, on channels: [String], from loop: Int = 0, data: String = "{}", excluded: TestClient? = nil,
        audience: RoleSet = .everybody, attendedUpTo: [UInt64]? = nil, receipt: UInt64? = nil, order: UInt64? = nil,
        arrivedAt: UInt64 = 0, way: Publication.Way = .direct
    ) {
        let frames = channels.compactMap { ChannelName(allowingServerToUser: $0) }.map {
            ChannelFrame($0, Frame.text(ServerEvent.event(name: event, channel: $0, data: DataLiteral(content: data))))
        }
        engines[loop].publish(
            Publication(
                app: 0, frames: OneOrMany(frames), excluded: excluded?.id, audience: audience, attendedUpTo: attendedUpTo, receipt: receipt,
                cacheOrder: order ?? directory.nextOrder(), arrivedAt: arrivedAt, way: way))
    }

    // MARK: Messages between loops

    var waitingMessages: Int { queues.values.reduce(0) { $0 + $1.count } }

    /// Handles one waiting message of a pair drawn at random; false when there is none.
    @discardableResult
    func step() -> Bool {
        let pairs = queues.filter { !$0.value.isEmpty }.keys.sorted { $0.lexicographicallyPrecedes($1) }
        guard !pairs.isEmpty else { return false }
        let pair = pairs[random.below(pairs.count)]
        guard let message = queues[pair]?.removeFirst() else { return false }
        // As the loop's owner does it.
        engines[pair[1]].adoptApps()
        engines[pair[1]].receive(message)
        return true
    }

    /// Handles everything that waits, with turns that end at random, and flushes.
    func settle() {
        repeat {
            while step() {
                if random.below(4) == 0 { engines[random.below(engines.count)].flush() }
            }
            for engine in engines { engine.flush() }
        } while waitingMessages > 0 || engines.contains(where: \.hasMoreToWrite)
    }

    /// The loop that is home of a channel of the first app.
    func home(_ channel: String) -> Int {
        guard let name = ChannelName(channel) else { return 0 }
        return engines[0].homeLoop(app: 0, channel: name)
    }

    func summary(_ channel: String) -> HomeRegistry.Summary? {
        guard let name = ChannelName(channel) else { return nil }
        return engines[home(channel)].home.summary(app: 0, channel: name)
    }

    func users(_ channel: String) -> Set<String> {
        guard let name = ChannelName(channel) else { return [] }
        return Set(engines[home(channel)].home.users(app: 0, channel: name))
    }

    /// Rules that were broken so far, by anybody.
    var violations: [String] {
        everybody.flatMap { client in client.violations.map { "\(client.id): \($0)" } } + sinks.flatMap(\.violations)
    }
}
