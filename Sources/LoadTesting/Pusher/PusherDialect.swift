internal import Foundation
internal import HubCrypto
internal import HubJSON
internal import Synchronization

/// Pusher's protocol, for any compatible server: WebSockets at `/app/KEY`, signed publishes at `/apps/ID/events`.
package struct PusherDialect: Dialect {
    /// The app in whose name the tester acts.
    package struct App: Sendable {
        package var id: String
        package var key: String
        package var secret: String

        package init(id: String, key: String, secret: String) {
            self.id = id
            self.key = key
            self.secret = secret
        }
    }

    package let name = "pusher"
    package let app: App
    private var target: Target
    private let code: HMACKey
    private let users = PresenceUsers()
    /// Name of every published event.
    package static let eventName = "load"

    package init(app: App, target: Target) {
        self.app = app
        self.target = target
        code = HMACKey(app.secret)
    }

    package func towards(_ target: Target) -> any Dialect {
        var other = self
        other.target = target
        return other
    }

    package var subprotocol: String? { nil }
    package var isBinary: Bool { false }

    package func path(channel: String) -> String { "/app/\(app.key)?protocol=7&client=tandem-loadtest&version=1.0" }

    package func opening(channel: String) -> [OpeningStep] {
        opening(channel: channel, member: channel.hasPrefix("presence-") ? users.next() : nil)
    }

    /// The same as a named member; an id that contains a mark is recognised in the `member_added` of all members.
    package func opening(channel: String, member: String?) -> [OpeningStep] {
        let subscribe = OpeningStep(awaiting: "pusher:connection_established") { message in
            subscription(to: channel, member: member, socketID: Self.socketID(in: message))
        }
        // Every frame of the subscription names the channel; the acknowledgement comes before any event.
        return [subscribe, OpeningStep(awaiting: "pusher_internal:subscription_succeeded")]
    }

    /// The frame that subscribes; public channels need no signature.
    package func subscription(to channel: String, member: String?, socketID: String) -> String {
        var data: [String: String] = ["channel": channel]
        if channel.hasPrefix("private-") || channel.hasPrefix("presence-") {
            var signed = "\(socketID):\(channel)"
            if let member {
                let content = "{\"user_id\":\(Self.quoted(member))}"
                data["channel_data"] = content
                signed += ":\(content)"
            }
            data["auth"] = "\(app.key):\(Hex.encode(code.code(of: Array(signed.utf8))))"
        }
        let members = data.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\(Self.quoted($0.value))" }
        return "{\"event\":\"pusher:subscribe\",\"data\":{\(members.joined(separator: ","))}}"
    }

    package func publish(channel: String, data: String) -> PublishAction {
        .http(event(Self.eventName, channel: channel, data: data))
    }

    /// A whole signed request that publishes one event.
    package func event(_ name: String, channel: String, data: String) -> [UInt8] {
        request(
            "POST", "/apps/\(app.id)/events",
            body: "{\"name\":\(Self.quoted(name)),\"channel\":\(Self.quoted(channel)),\"data\":\(Self.quoted(data))}")
    }

    /// A whole signed request of the HTTP API (docs/protocol.md, 4.4).
    package func request(_ method: String, _ path: String, body: String) -> [UInt8] {
        let content = Array(body.utf8)
        var query = "auth_key=\(app.key)&auth_timestamp=\(time(nil))&auth_version=1.0"
        if !content.isEmpty { query += "&body_md5=\(Hex.encode(Digest.md5(content)))" }
        let signature = Hex.encode(code.code(of: Array("\(method)\n\(path)\n\(query)".utf8)))
        let head =
            "\(method) \(target.prefix)\(path)?\(query)&auth_signature=\(signature) HTTP/1.1\r\nHost: \(target.authority)\r\n"
            + "Content-Type: application/json\r\nContent-Length: \(content.count)\r\n\r\n"
        return Array(head.utf8) + content
    }

    /// The socket id in `connection_established`, whose data is JSON within a string.
    static func socketID(in message: String) -> String {
        guard let place = message.range(of: "socket_id") else { return "" }
        return String(message[place.upperBound...].drop { !$0.isNumber }.prefix { $0.isNumber || $0 == "." })
    }

    /// A JSON string. The tester's texts contain no control characters.
    static func quoted(_ text: String) -> String {
        // Quotes by bytes, because a walk by characters would cost a third of a publish's time.
        var quoted: [UInt8] = [UInt8(ascii: "\"")]
        quoted.reserveCapacity(text.utf8.count + text.utf8.count / 8 + 2)
        for byte in text.utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { quoted.append(UInt8(ascii: "\\")) }
            quoted.append(byte)
        }
        quoted.append(UInt8(ascii: "\""))
        return String(decoding: quoted, as: UTF8.self)
    }
}

/// Gives every member an id of its own.
private final class PresenceUsers: Sendable {
    private let count = Atomic<Int>(0)

    func next() -> String { "member-\(count.add(1, ordering: .relaxed).newValue)" }
}
