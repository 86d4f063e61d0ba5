import HubCore
import HubJSON
import HubTesting
import PusherProtocol

/// Bodies of publishes and batches. The first byte of an input selects the kind of the rest.
enum PublishTarget {
    @Sendable static func make() -> FuzzTarget {
        let tokens =
            SeededRandom.jsonTokens + [
                "\"name\":", "\"data\":", "\"channels\":[", "\"channel\":", "\"socket_id\":\"1.2\"", "\"info\":\"user_count\"",
                "\"batch\":[", "pusher:",
            ]
        let source = InputSource("publishes", tokens: tokens) { random in
            let isBatch = random.chance(1, in: 3)
            let text = isBatch ? batch(&random) : event(&random, isItem: false)
            return [isBatch ? 0x62 : 0x65] + text.utf8
        }
        var limits = PublishLimits()
        limits.eventDataBytesMax = 1000
        let parser = JSONParser(capacityBytes: limits.batchBodyBytesMax)
        let second = JSONParser(capacityBytes: FuzzTarget.inputBytesMax)
        return FuzzTarget(input: source.draw) { check($0, limits, parser, second) }
    }

    private static func batch(_ random: inout SeededRandom) -> String {
        let count = random.chance(1, in: 20) ? random.below(13) : random.below(4)
        return "{\"batch\":[" + (0..<count).map { _ in event(&random, isItem: true) }.joined(separator: ",") + "]}"
    }

    private static func event(_ random: inout SeededRandom, isItem: Bool) -> String {
        let name = random.element(of: [
            "e", "App\\Events\\X", "client-x", "pusher:x", "é", "", String(repeating: "n", count: 196 + random.below(8)),
        ])
        var members = ["\"name\":" + random.quoted(name)]
        if isItem || random.chance(1, in: 3) {
            members.append("\"channel\":" + random.quoted(random.channel()))
        } else {
            let count = random.chance(1, in: 60) ? 98 + random.below(6) : 1 + random.below(4)
            members.append(
                "\"channels\":[" + (0..<count).map { "\"c\($0 % 40)\($0 % 7 == 6 ? random.word() : "")\"" }.joined(separator: ",") + "]")
        }
        let data = random.chance(1, in: 100) ? "\"" + String(repeating: "x\\n", count: 495 + random.below(10)) + "\"" : random.json()
        members.append("\"data\":" + random.space() + (random.chance(1, in: 2) ? random.quoted(data) : data))
        if random.chance(1, in: 5) {
            members.append(
                "\"socket_id\":" + random.element(of: ["\"1.2\"", "\"9007199254740992.1\"", "\"1\"", "null", "1.2", "\"1.2.3\""]))
        }
        if random.chance(1, in: 5) {
            members.append(
                "\"info\":" + random.element(of: ["\"user_count\"", "\"subscription_count,cache\"", "\"x\"", "\"\"", "null", "[]"]))
        }
        members.shuffle(using: &random)
        return "{" + members.joined(separator: ",") + random.space() + "}"
    }

    private static func check(_ bytes: [UInt8], _ limits: PublishLimits, _ parser: JSONParser, _ second: JSONParser) -> String? {
        guard let kind = bytes.first else { return nil }
        let body = Array(bytes.dropFirst())
        do throws(PublishError) {
            if kind & 1 == 0 {
                let requests = try PublishRequest.parse(batch: body, limits: limits, with: parser)
                guard (1...limits.batchMax).contains(requests.count) else { return "a batch of \(requests.count)" }
                for request in requests { if let reason = judge(request, body, limits, second) { return reason } }
                let text = JSONText.joined(requests.map { written($0, isItem: true) }, prefix: "{\"batch\":[", suffix: "]}")
                return try PublishRequest.parse(batch: text, limits: limits, with: parser) == requests
                    ? nil : "written anew it is another batch"
            }
            let request = try PublishRequest.parse(event: body, limits: limits, with: parser)
            if let reason = judge(request, body, limits, second) { return reason }
            return try PublishRequest.parse(event: written(request, isItem: false), limits: limits, with: parser) == request
                ? nil : "written anew it is another publish"
        } catch {
            guard [400, 413].contains(error.status), !error.message.isEmpty, error.message.utf8.count < 2000 else {
                return "a bad refusal: \(error)"
            }
            return nil
        }
    }

    private static func judge(_ request: PublishRequest, _ body: [UInt8], _ limits: PublishLimits, _ parser: JSONParser) -> String? {
        if request.name.isEmpty || request.name.unicodeScalars.count > EventName.charactersMax || EventName.isReserved(request.name) {
            return "a forbidden name"
        }
        if request.channels.isEmpty || request.channels.count > limits.channelsMax || Set(request.channels).count != request.channels.count
        {
            return "a wrong list of channels"
        }
        if request.data.contentByteCount > limits.eventDataBytesMax { return "too much data" }
        for channel in request.channels.prefix(2) {
            let frame = ServerEvent.event(name: request.name, channel: channel, data: request.data)
            do {
                let root = try parser.parse(frame)
                guard root.find("event")?.string == request.name, root.find("channel")?.string == channel.text else {
                    return "the frame has another event or channel"
                }
                guard root.find("data")?.stringCount == request.data.contentByteCount else { return "the frame's data has another size" }
                guard parser.rawString(ofMember: "data", of: root) == Array(request.data.bytes) else {
                    return "the frame's data has other bytes"
                }
            } catch {
                return "the frame is no JSON: \(error)"
            }
        }
        return isCarried(Array(request.data.bytes), body, parser) ? nil : "the data string is not in the body as it was sent"
    }

    /// Whether the body contains the literal. Otherwise the literal must be the text of a JSON value other than a string.
    private static func isCarried(_ literal: [UInt8], _ body: [UInt8], _ parser: JSONParser) -> Bool {
        if body.firstRange(of: literal) != nil { return true }
        guard let content = (try? JSONValue(parsing: literal))?.stringValue else { return false }
        guard let value = try? JSONValue(parsing: content) else { return false }
        return value.stringValue == nil
    }

    private static func written(_ request: PublishRequest, isItem: Bool) -> [UInt8] {
        var text = Array("{\"name\":".utf8)
        JSONText.appendQuoted(request.name.utf8, to: &text)
        text += isItem ? ",\"channel\":".utf8 : ",\"channels\":".utf8
        let channels = JSONValue.array(request.channels.map { .string($0.text) })
        text += isItem ? JSONValue.string(request.channels[0].text).serialized() : channels.serialized()
        text += ",\"data\":".utf8
        text += request.data.bytes
        if let socket = request.excludedSocketID { text += ",\"socket_id\":\"\(socket)\"".utf8 }
        let names = [(ChannelAttributes.userCount, "user_count"), (.subscriptionCount, "subscription_count"), (.cache, "cache")]
        text += ",\"info\":\"\(names.filter { request.attributes.contains($0.0) }.map(\.1).joined(separator: ","))\"}".utf8
        return text
    }
}

extension JSONText {
    fileprivate static func joined(_ parts: [[UInt8]], prefix: String, suffix: String) -> [UInt8] {
        Array(prefix.utf8) + parts.joined(separator: [UInt8(ascii: ",")]) + Array(suffix.utf8)
    }
}
