import HubCore
import HubJSON
import HubTesting
import PusherProtocol

/// Client frames.
enum FrameTarget {
    @Sendable static func make() -> FuzzTarget {
        let tokens =
            SeededRandom.jsonTokens + [
                "\"event\":", "\"data\":", "\"channel\":", "\"pusher:subscribe\"", "\"client-a\"", "\"auth\":", "\"channel_data\":",
                "\"user_data\":", "\"user_id\":\"x\"",
            ]
        let source = InputSource("frames", tokens: tokens, wellFormed: frame)
        let parser = JSONParser(capacityBytes: FuzzTarget.inputBytesMax)
        return FuzzTarget(input: source.draw) { check($0, parser) }
    }

    private static func frame(_ random: inout SeededRandom) -> [UInt8] {
        var members: [String] = []
        let event = random.element(of: [
            "pusher:ping", "pusher:pong", "pusher:subscribe", "pusher:subscribe", "pusher:unsubscribe", "pusher:signin", "client-a",
            "client-\u{301}", "client-" + random.word(),
            "client-" + String(repeating: "n", count: 190 + random.below(6)), random.word(),
        ])
        if !random.chance(1, in: 40) { members.append(random.quoted("event") + ":" + random.space() + random.quoted(event)) }
        if random.chance(1, in: 2) {
            members.append("\"channel\":" + (random.chance(1, in: 10) ? random.json() : random.quoted(random.channel())))
        }
        if !random.chance(1, in: 10) { members.append("\"data\":" + data(of: event, &random)) }
        if random.chance(1, in: 10) { members.append(random.jsonString() + ":" + random.json()) }
        if random.chance(1, in: 20), !members.isEmpty { members.append(random.element(of: members)) }
        members.shuffle(using: &random)
        return Array(("{" + members.map { random.space() + $0 }.joined(separator: ",") + "}").utf8)
    }

    private static func data(of event: String, _ random: inout SeededRandom) -> String {
        guard event.hasPrefix("pusher:"), !random.chance(1, in: 8) else { return random.json() }
        var members: [String] = []
        for name in ["channel", "auth", "channel_data", "user_data"] where random.chance(2, in: 3) {
            let value =
                name == "channel"
                ? random.quoted(random.channel()) : random.chance(1, in: 6) ? random.json() : random.quoted(random.json(depth: 2))
            members.append("\"\(name)\":" + value)
        }
        let object = "{" + members.joined(separator: ",") + "}"
        return random.chance(1, in: 3) ? random.quoted(object) : object
    }

    private static func check(_ bytes: [UInt8], _ parser: JSONParser) -> String? {
        let event = ClientEvent.parse(bytes, with: parser)
        switch event {
        case .ping, .pong: return nil
        case .subscribe(let channel, let auth, let channelData):
            var data: [String: JSONValue] = ["channel": .string(channel)]
            data["auth"] = auth.map { .string($0) }
            data["channel_data"] = channelData.map { .string($0) }
            if auth?.isEmpty == true || channelData?.isEmpty == true { return "an empty string that should be nil" }
            return same(event, as: ["event": "pusher:subscribe", "data": .object(data)], parser)
        case .unsubscribe(let channel):
            return same(event, as: ["event": "pusher:unsubscribe", "data": ["channel": .string(channel)]], parser)
        case .signIn(let auth, let userData):
            return same(event, as: ["event": "pusher:signin", "data": ["auth": .string(auth), "user_data": .string(userData)]], parser)
        case .client(let name, let channel, let data): return client(event, name, channel, data, parser)
        case .unknown(let name): return EventName.isClientEvent(name) ? "a client event that nobody knows" : nil
        case .malformed(let reason):
            return reason.isEmpty || reason.utf8.count > 300 ? "the refusal is no short sentence: \(reason)" : nil
        }
    }

    private static func same(_ event: ClientEvent, as value: JSONValue, _ parser: JSONParser) -> String? {
        ClientEvent.parse(value.serialized(), with: parser) == event ? nil : "written anew it is another event"
    }

    /// Checks a forwarded client event: it parses as the same event, and carries the data byte for byte.
    private static func client(_ event: ClientEvent, _ name: String, _ text: String, _ data: DataLiteral, _ parser: JSONParser) -> String? {
        guard EventName.isClientEvent(name), !text.isEmpty else { return "a client event without a name or a channel" }
        guard let channel = ChannelName(text) else { return nil }
        let frame = ServerEvent.event(name: name, channel: channel, data: data, userID: "u\"\\é")
        if ClientEvent.parse(frame, with: parser) != event { return "passed on it is another event" }
        do {
            let root = try parser.parse(frame)
            guard root.find("user_id")?.string == "u\"\\é", root.find("data")?.stringCount == data.contentByteCount else {
                return "passed on it has another user_id or size"
            }
            return parser.rawString(ofMember: "data", of: root) == Array(data.bytes) ? nil : "passed on its data has other bytes"
        } catch {
            return "passed on it is no JSON: \(error)"
        }
    }
}

extension SeededRandom {
    /// A channel name, mostly valid.
    mutating func channel() -> String {
        let prefix = element(of: [
            "", "private-", "presence-", "private-encrypted-", "cache-", "private-cache-", "private-encrypted-cache-", "presence-cache-",
            "#server-to-user-", "#",
        ])
        return prefix
            + element(of: ["a", "b.c", "x;y,z=@_-", "", "ä", "a b", "a\"b", "a\\", String(repeating: "n", count: 150 + below(60))])
    }
}
