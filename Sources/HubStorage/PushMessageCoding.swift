package import HubCore
internal import HubDefinitions
package import HubDelivery

/// The stored form of a `PushMessage`: a JSON object with a version.
///
/// A row outlives the process that wrote it, so member names are fixed here instead of derived from Swift's. Unknown members are ignored;
/// absent optional members are nil or empty. A change that older versions would misread gets the next version number.
package enum PushMessageCoding {
    /// The version written here, and the newest one readable.
    package static let version: Int64 = 1

    /// The stored form; its cost is that of building the object.
    package static func encode(_ message: PushMessage) -> JSONValue {
        var members: [String: JSONValue] = [
            "v": .int(version), "nid": .string(message.nid), "event": .string(message.event),
            "kind": .string(message.kind.rawValue), "policy": .string(message.policy.rawValue), "expires_at": .int(message.expiresAt),
            "committed_at": .int(message.committedAt), "sequence": .int(message.sequence),
        ]
        members["title"] = message.title.map(JSONValue.string)
        members["body"] = message.body.map(JSONValue.string)
        members["image"] = message.image.map(JSONValue.string)
        members["group"] = message.group.map(JSONValue.string)
        if !message.data.isEmpty { members["data"] = .object(message.data) }
        if !message.apns.isEmpty { members["apns"] = .object(message.apns) }
        if message.content != .both { members["content"] = .string(message.content.rawValue) }
        if !message.apnsRoot.isEmpty { members["apns_root"] = .object(message.apnsRoot) }
        if !message.apnsHeaders.isEmpty { members["apns_headers"] = .object(message.apnsHeaders.mapValues(JSONValue.string)) }
        if !message.apnsOptions.isEmpty { members["apns_options"] = .object(message.apnsOptions) }
        members["live_activity_token"] = message.liveActivityToken.map(JSONValue.string)
        if !message.androidV2.isEmpty { members["android_v2"] = .object(message.androidV2) }
        if !message.android.isEmpty { members["android"] = .object(message.android) }
        if !message.webpush.isEmpty { members["webpush"] = .object(message.webpush) }
        if !message.fcmOptions.isEmpty { members["fcm_options"] = .object(message.fcmOptions) }
        return .object(members)
    }

    /// The text shared by messages that differ in their ids at most.
    package struct Text: Sendable {
        /// Id of the event whose deliveries share the text.
        package let event: String
        /// The result of `encode` as text, without `nid`.
        package let json: String
        /// Number of messages with this text.
        package fileprivate(set) var uses = 0

        /// Appends the text of the whole message, in UTF-8.
        package func append(to output: inout [UInt8], nid: String) {
            // The comma below stands between the nid and at least one other member.
            assert(json.utf8.count > 2 && json.utf8.first == UInt8(ascii: "{"), "a text of \(json.utf8.count) bytes has no members")
            output += "{\"nid\":".utf8
            JSONText.appendQuoted(nid.utf8, to: &output)
            output.append(UInt8(ascii: ","))
            output += json.utf8.dropFirst()
        }
    }

    /// Encodes messages one after another. Messages of one event mostly differ in `nid` only, so each distinct text is encoded once.
    package struct Writer {
        private var known: [(message: PushMessage, place: Int)] = []
        /// Number of recent texts compared with a new message: an event has about as many variants with a common text.
        package static let knownMax = 8
        /// Distinct texts in the order of first use.
        package private(set) var texts: [Text] = []

        /// No texts yet.
        package init() {}

        /// - Parameter event: id of the event of the message's delivery.
        /// - Returns: the index of the message's text in `texts`.
        package mutating func write(_ message: PushMessage, event: String) -> Int {
            let place = place(of: message, event: event)
            texts[place].uses += 1
            return place
        }

        private mutating func place(of message: PushMessage, event: String) -> Int {
            if let known = known.first(where: { $0.message.isSameText(as: message) && texts[$0.place].event == event }) {
                return known.place
            }
            var members = encode(message).objectValue ?? [:]
            members["nid"] = nil
            texts.append(Text(event: event, json: JSONValue.object(members).text))
            if known.count == Self.knownMax { known.removeFirst() }
            known.append((message, texts.count - 1))
            assert(known.count <= Self.knownMax && known.allSatisfy { $0.place < texts.count }, "\(known.count) texts are compared")
            return texts.count - 1
        }
    }

    /// - Throws: `StorageError.Code.unreadableRow`, which names the member but never its value.
    package static func decode(_ value: JSONValue) throws(StorageError) -> PushMessage {
        guard case .object(let members) = value else { throw unreadable("it is not a JSON object") }
        let version = try required("v", of: members, \.intValue)
        guard (1...Self.version).contains(version) else {
            throw unreadable("its form is \(version), and this version reads up to \(Self.version)")
        }
        guard let kind = PushKind(rawValue: try required("kind", of: members, \.stringValue)) else {
            throw unreadable("its `kind` is unknown")
        }
        // Earlier versions did not write this member.
        let policy = try optional("policy", of: members, \.stringValue).map { name throws(StorageError) in
            guard let policy = Policy(rawValue: name) else { throw unreadable("its `policy` is unknown") }
            return policy
        }
        let content = try optional("content", of: members, \.stringValue).map { name throws(StorageError) in
            guard let content = ContentKind(rawValue: name) else { throw unreadable("its `content` is unknown") }
            return content
        }
        let headers = try optional("apns_headers", of: members, \.objectValue) ?? [:]
        return PushMessage(
            nid: try required("nid", of: members, \.stringValue), event: try required("event", of: members, \.stringValue),
            kind: kind, policy: policy, content: content ?? .both, title: try optional("title", of: members, \.stringValue),
            body: try optional("body", of: members, \.stringValue), image: try optional("image", of: members, \.stringValue),
            data: try optional("data", of: members, \.objectValue) ?? [:],
            apns: try optional("apns", of: members, \.objectValue) ?? [:],
            apnsRoot: try optional("apns_root", of: members, \.objectValue) ?? [:], apnsHeaders: headers.compactMapValues(\.stringValue),
            apnsOptions: try optional("apns_options", of: members, \.objectValue) ?? [:],
            liveActivityToken: try optional("live_activity_token", of: members, \.stringValue),
            android: try optional("android", of: members, \.objectValue) ?? [:],
            androidV2: try optional("android_v2", of: members, \.objectValue) ?? [:],
            webpush: try optional("webpush", of: members, \.objectValue) ?? [:],
            fcmOptions: try optional("fcm_options", of: members, \.objectValue) ?? [:],
            group: try optional("group", of: members, \.stringValue),
            expiresAt: try required("expires_at", of: members, \.intValue),
            committedAt: try required("committed_at", of: members, \.intValue),
            sequence: try required("sequence", of: members, \.intValue))
    }

    private static func required<Value>(
        _ name: String, of members: [String: JSONValue], _ read: (JSONValue) -> Value?
    ) throws(StorageError) -> Value {
        guard let value = try optional(name, of: members, read) else { throw unreadable("`\(name)` is missing") }
        return value
    }

    private static func optional<Value>(
        _ name: String, of members: [String: JSONValue], _ read: (JSONValue) -> Value?
    ) throws(StorageError) -> Value? {
        guard let member = members[name], member != .null else { return nil }
        guard let value = read(member) else { throw unreadable("`\(name)` has the wrong type") }
        return value
    }

    private static func unreadable(_ reason: String) -> StorageError {
        StorageError(.unreadableRow, "a stored notification cannot be read: \(reason)")
    }
}
