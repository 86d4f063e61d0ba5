import HubChannels
import HubCore
import HubJSON
import HubTesting
import PusherProtocol

/// Programs for a group of engines: an input's bytes are operations with their operands, in sequence.
enum EngineTarget {
    /// The operations and their relative frequency. A new operation needs a line here and its function below.
    private static let operations: [(weight: Int, run: @Sendable (EngineRig, inout Operands) -> Void)] = [
        (8, open), (4, close), (16, subscribe), (3, subscribeWrongly), (7, unsubscribe), (8, clientEvent), (2, appState), (10, publish),
        (4, narrowPublish),
        (3, audience), (3, frame), (1, noise), (1, tooMuch), (24, step), (6, flush), (2, advance), (1, refuse), (2, audit),
        (6, signIn), (1, signInWrongly), (1, terminate), (1, changeDefinitions),
    ]

    @Sendable static func make() -> FuzzTarget {
        let table = operations.enumerated().flatMap { Array(repeating: UInt8($0.offset), count: $0.element.weight) }
        let source = InputSource("engine", tokens: (0..<operations.count).map { String(UnicodeScalar(UInt8($0))) }) { random in
            var bytes = [UInt8(truncatingIfNeeded: random.next()), UInt8(truncatingIfNeeded: random.next())]
            for _ in 0..<10 + random.below(random.chance(1, in: 20) ? 400 : 80) {
                bytes.append(random.element(of: table))
                for _ in 0..<random.below(4) { bytes.append(UInt8(truncatingIfNeeded: random.next())) }
            }
            return bytes
        }
        let parser = JSONParser(capacityBytes: FuzzTarget.inputBytesMax)
        return FuzzTarget(input: source.draw) { check($0, parser) }
    }

    /// Maximum length of a program: an audit costs as much as everything before it.
    private static let bytesMax = 4096

    private static func check(_ bytes: [UInt8], _ parser: JSONParser) -> String? {
        var operands = Operands(bytes.prefix(bytesMax))
        let loops = 1 + operands.below(4)
        let options = operands.next()
        let rig = EngineRig(loops: loops, parser: parser) { app in
            app.connectionsMax = options & 1 == 0 ? 0 : 5
            app.presenceMembersMax = options & 2 == 0 ? 100 : 2
            app.clientEvents = options & 4 == 0
            app.clientEventsPerSecond = options & 8 == 0 ? 3 : 1000
            app.eventDataBytesMax = 64
            app.subscriptionCount = options & 16 == 0
            app.watchlist = options & 32 == 0
        }
        while !operands.isEmpty, rig.violation == nil {
            operations[operands.below(operations.count)].run(rig, &operands)
        }
        if rig.violation == nil { rig.audit(bytes.count) }
        if rig.violation == nil { rig.finish(bytes.count) }
        return rig.violation
    }

    // MARK: Operations

    @Sendable private static func open(_ rig: EngineRig, _ operands: inout Operands) {
        guard rig.clients.count < 12 else { return }
        rig.open(operands.below(rig.engines.count))
    }

    @Sendable private static func refuse(_ rig: EngineRig, _ operands: inout Operands) {
        guard rig.clients.count < 12 else { return }
        let loop = operands.below(rig.engines.count)
        switch operands.below(3) {
        case 0: rig.open(loop, key: nil)
        case 1: rig.open(loop, key: "nobody's")
        default: rig.open(loop, version: "3")
        }
    }

    @Sendable private static func close(_ rig: EngineRig, _ operands: inout Operands) {
        if let client = operands.client(rig) { rig.close(client) }
    }

    @Sendable private static func subscribe(_ rig: EngineRig, _ operands: inout Operands) {
        guard let client = operands.speaker(rig) else { return }
        let channel = operands.channel()
        var data: [String: JSONValue] = ["channel": .string(channel)]
        var user: String?
        var channelData: String?
        let userChannel = "#server-to-user-"
        if channel.hasPrefix(userChannel), client.user != String(channel.dropFirst(userChannel.count)) {
            return rig.say(client, "pusher:subscribe", data: .object(data))
        }
        if channel.hasPrefix("presence-"), let signedIn = client.user, operands.below(3) == 0 {
            user = signedIn
        } else if channel.hasPrefix("presence-") {
            let id = operands.below(5)
            user = id == 4 ? "7" : "u\(id)\"é"
            let value: JSONValue = id == 4 ? 7 : .string(user ?? "")
            channelData = JSONValue.object(["user_id": value, "user_info": id == 0 ? .null : ["name": .string("N\(id)")]]).text
            data["channel_data"] = channelData.map { .string($0) }
        }
        data["auth"] = .string(
            SubscriptionAuth.sign(
                socketID: client.socketID, channel: channel, channelData: channelData, key: EngineRig.key, secret: EngineRig.secret))
        // A repeated subscription changes nothing, not even the user.
        if client.wanted[channel] == nil { client.wanted[channel] = .some(user) }
        rig.say(client, "pusher:subscribe", data: .object(data))
    }

    @Sendable private static func subscribeWrongly(_ rig: EngineRig, _ operands: inout Operands) {
        guard let client = operands.speaker(rig) else { return }
        let channel = operands.channel()
        // Public channels need no signature, so a bad one does not invalidate the subscription.
        guard channel.hasPrefix("p") else { return rig.say(client, "pusher:subscribe", data: ["channel": "a b\"\u{1}"]) }
        let wrong: [JSONValue] = [
            ["channel": .string(channel)], ["channel": .string(channel), "auth": "key:00"],
            ["channel": .string(channel), "auth": "nobody:00", "channel_data": "{}"],
            ["channel": .string(channel), "auth": 1],
        ]
        rig.say(client, "pusher:subscribe", data: wrong[operands.below(wrong.count)])
    }

    @Sendable private static func signIn(_ rig: EngineRig, _ operands: inout Operands) {
        guard let client = operands.speaker(rig) else { return }
        let user = EngineRig.users[operands.below(EngineRig.users.count)]
        let choice = operands.next()
        let watchlist = EngineRig.users.indices.filter { choice & 1 << UInt8($0) != 0 }.map { EngineRig.users[$0] }
        let userData = JSONValue.object(["id": .string(user), "watchlist": .array(watchlist.map(JSONValue.string)), "user_info": ["x": 1]])
            .text
        // A connection keeps its first signed-in user.
        if client.user == nil {
            client.user = user
            client.watchlist = watchlist
        }
        let auth = SubscriptionAuth.signUser(socketID: client.socketID, userData: userData, key: EngineRig.key, secret: EngineRig.secret)
        rig.say(client, "pusher:signin", data: ["auth": .string(auth), "user_data": .string(userData)])
    }

    @Sendable private static func signInWrongly(_ rig: EngineRig, _ operands: inout Operands) {
        guard let client = operands.speaker(rig) else { return }
        let userData = ["{}", "{\"id\":\"s0\"}", "{\"id\":7}", "x"][operands.below(4)]
        let secret = userData.contains("s0") ? "guess" : EngineRig.secret
        let auth = SubscriptionAuth.signUser(socketID: client.socketID, userData: userData, key: EngineRig.key, secret: secret)
        rig.say(client, "pusher:signin", data: ["auth": .string(auth), "user_data": .string(userData)])
    }

    @Sendable private static func terminate(_ rig: EngineRig, _ operands: inout Operands) {
        rig.terminate(
            EngineRig.users[operands.below(EngineRig.users.count)], from: operands.below(rig.engines.count), choice: operands.below(16))
    }

    @Sendable private static func changeDefinitions(_ rig: EngineRig, _ operands: inout Operands) {
        rig.define(["presence-a", "presence-", "private-", "#", "none"][operands.below(5)], heardBy: operands.below(rig.engines.count))
    }

    @Sendable private static func unsubscribe(_ rig: EngineRig, _ operands: inout Operands) {
        guard let client = operands.speaker(rig) else { return }
        let channel = operands.channel()
        rig.say(client, "pusher:unsubscribe", data: ["channel": .string(channel)])
        client.left(channel)
    }

    @Sendable private static func clientEvent(_ rig: EngineRig, _ operands: inout Operands) {
        guard let client = operands.speaker(rig) else { return }
        let data: [JSONValue] = ["text", ["x": 1], .null, [1, 2], .string(String(repeating: "x", count: 70)), .string("\u{1}\"\\")]
        rig.say(client, "client-\(operands.below(3))", channel: operands.channel(), data: data[operands.below(data.count)])
    }

    @Sendable private static func appState(_ rig: EngineRig, _ operands: inout Operands) {
        guard let client = operands.speaker(rig) else { return }
        let data: [JSONValue] = [
            ["state": "foreground"], ["state": "background"], "{\"state\":\"background\"}", ["state": 1], "x",
            ["state": "background", "keeps_working": true],
        ]
        rig.say(client, "client-app-state", channel: operands.channel(), data: data[operands.below(data.count)])
    }

    @Sendable private static func publish(_ rig: EngineRig, _ operands: inout Operands) {
        rig.publish(from: operands.below(rig.engines.count), on: [operands.channel()])
    }

    @Sendable private static func narrowPublish(_ rig: EngineRig, _ operands: inout Operands) {
        let loop = operands.below(rig.engines.count)
        let channels = operands.below(2) == 0 ? [operands.channel()] : EngineRig.channels
        switch operands.below(3) {
        case 0: rig.publish(from: loop, on: channels, excluded: operands.client(rig)?.id)
        case 1: rig.publish(from: loop, on: channels, audience: RoleSet(rawValue: 1 << UInt32(operands.below(3))))
        default:
            let tickets = rig.engines.map { _ in UInt64(operands.below(20)) }
            rig.publish(from: loop, on: channels, attendedUpTo: tickets)
        }
    }

    @Sendable private static func audience(_ rig: EngineRig, _ operands: inout Operands) {
        guard let client = operands.speaker(rig), let channel = ChannelName(operands.channel()) else { return }
        rig.engines[client.id.loop].receive(.audience(client.id, channel: channel, RoleSet.role(operands.below(3))))
    }

    @Sendable private static func frame(_ rig: EngineRig, _ operands: inout Operands) {
        guard let client = operands.speaker(rig) else { return }
        let texts = [
            "{\"event\":\"pusher:ping\"}", "{\"event\":\"pusher:pong\",\"data\":null}", "{\"event\":\"x\"}", "{}", "[]", "",
            "{\"event\":\"pusher:signin\",\"data\":{\"auth\":\"a\",\"user_data\":\"{}\"}}",
        ]
        rig.say(client, Array(texts[operands.below(texts.count)].utf8))
    }

    @Sendable private static func noise(_ rig: EngineRig, _ operands: inout Operands) {
        guard let client = operands.speaker(rig) else { return }
        if operands.below(2) == 0 { return rig.engines[client.id.loop].receivedBinary(from: client.id) }
        rig.say(client, (0..<operands.below(40)).map { _ in operands.next() })
    }

    @Sendable private static func tooMuch(_ rig: EngineRig, _ operands: inout Operands) {
        guard let client = operands.speaker(rig) else { return }
        rig.engines[client.id.loop].receivedTooMuch(from: client.id)
    }

    @Sendable private static func step(_ rig: EngineRig, _ operands: inout Operands) { rig.step(operands.below(16)) }
    @Sendable private static func flush(_ rig: EngineRig, _ operands: inout Operands) {
        rig.engines[operands.below(rig.engines.count)].flush()
    }
    @Sendable private static func advance(_ rig: EngineRig, _ operands: inout Operands) {
        rig.clock.advance(milliseconds: Int64(operands.next()) * 40)
    }
    @Sendable private static func audit(_ rig: EngineRig, _ operands: inout Operands) { rig.audit(operands.below(16)) }
}

/// Reads operands from an input; zeros at its end.
struct Operands {
    private var bytes: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    var isEmpty: Bool { bytes.isEmpty }
    mutating func next() -> UInt8 { bytes.popFirst() ?? 0 }
    mutating func below(_ end: Int) -> Int { Int(next()) % end }
    mutating func channel() -> String { EngineRig.channels[below(EngineRig.channels.count)] }
    mutating func client(_ rig: EngineRig) -> EngineClient? {
        let choice = next()
        return rig.clients.isEmpty ? nil : rig.clients[Int(choice) % rig.clients.count]
    }

    /// A connection that is not closing, because the transport passes nothing on from a closing one.
    mutating func speaker(_ rig: EngineRig) -> EngineClient? {
        client(rig).flatMap { $0.isClosed ? nil : $0 }
    }
}
