import HubCore
import HubJSON
import PusherProtocol

/// A connection in the engines' fuzzing. Judges every received frame like a strict client library.
final class EngineClient {
    let id: ConnectionID
    let socketID: SocketID
    private(set) var isClosed = false
    /// The transport has reported the end, so nothing may be sent any more.
    var isGone = false
    /// Valid subscriptions, with the user id in presence channels, until unsubscribed or refused.
    var wanted: [String: String?] = [:]
    /// Acknowledged channels, with their members as known to this client.
    private(set) var members: [String: Set<String>] = [:]
    /// The signed-in user.
    var user: String?
    /// Users watched since the sign-in.
    var watchlist: [String] = []
    /// Last reported status of each watched user.
    private(set) var isOnline: [String: Bool] = [:]
    /// Last reported subscriber count of each channel.
    private(set) var counts: [String: Int] = [:]
    /// Frames by event name since `forgetEvents`.
    private(set) var received: [String: Int] = [:]
    /// Newest number per publisher and channel: events must arrive in the order of publishing.
    private var newest: [String: Int] = [:]
    private let parser: JSONParser
    private let report: (String) -> Void

    init(_ id: ConnectionID, socketID: SocketID, parser: JSONParser, report: @escaping (String) -> Void) {
        self.id = id
        self.socketID = socketID
        self.parser = parser
        self.report = report
    }

    func left(_ channel: String) {
        members[channel] = nil
        wanted[channel] = nil
        counts[channel] = nil
        // A cache channel repeats an earlier event on subscription.
        newest = newest.filter { !$0.key.hasSuffix(" " + channel) }
    }

    func forgetEvents() { received = [:] }

    func closed() {
        if isClosed { report("closed twice") }
        isClosed = true
    }

    /// Receives joined WebSocket frames in their written form.
    /// - Parameter isBatch: whether the fan-out wrote them; the transport drops a batch for a closing connection.
    func receive(_ bytes: UnsafeRawBufferPointer, isBatch: Bool) {
        if isGone { report("a frame for a connection that is gone") }
        if isClosed {
            if !isBatch { report("a frame behind the close") }
            return
        }
        var index = 0
        while index < bytes.count {
            guard bytes[index] == 0x81 || bytes[index] == 0x89, index + 2 <= bytes.count else { return report("not a whole frame") }
            let isPing = bytes[index] == 0x89
            var length = Int(bytes[index + 1])
            index += 2
            if length >= 126 {
                let count = length == 126 ? 2 : 8
                length = bytes[index..<index + count].reduce(0) { $0 << 8 | Int($1) }
                index += count
            }
            guard index + length <= bytes.count else { return report("a frame ends early") }
            let payload = UnsafeRawBufferPointer(rebasing: bytes[index..<index + length])
            if isPing, EngineRig.isPage(id) { report("a PING for a page") }
            if isPing { newestPing = Array(payload) } else { judge(payload) }
            index += length
        }
    }

    /// Payload of the newest PING, for the PONG.
    private(set) var newestPing: [UInt8]?

    private func judge(_ text: UnsafeRawBufferPointer) {
        let root: JSONElement
        do throws(JSONError) {
            root = try parser.parse(text)
        } catch {
            return report("no JSON (\(error)): \(String(decoding: text, as: UTF8.self))")
        }
        guard let event = root.find("event")?.string else { return report("no event: \(String(decoding: text, as: UTF8.self))") }
        // Leave members out rather than sending null; ids and data are strings (docs/protocol.md, 1.4).
        for name: StaticString in ["channel", "user_id"] {
            if let member = root.find(name), member.kind != .string {
                return report("\(name) is no string: \(String(decoding: text, as: UTF8.self))")
            }
        }
        let data = root.find("data")
        if event == "pusher:error" {
            let code = data?.find("code")?.kind ?? .null
            guard data?.find("message")?.kind == .string, code == .int || code == .null else {
                return report("a bad error: \(String(decoding: text, as: UTF8.self))")
            }
        } else if data?.kind != .string {
            return report("data is no string: \(String(decoding: text, as: UTF8.self))")
        }
        if event == "pusher:ping", !EngineRig.isPage(id) { report("a pusher:ping for somebody who does not answer it") }
        received[event, default: 0] += 1
        if let channel = root.find("channel")?.string {
            follow(event, channel, data?.string ?? "")
        } else if event == "pusher_internal:watchlist_events" {
            watched(data?.string ?? "")
        }
    }

    private func follow(_ event: String, _ channel: String, _ data: String) {
        switch event {
        case "pusher:subscription_error": wanted[channel] = nil
        case "pusher_internal:subscription_succeeded":
            if members[channel] != nil { report("a second acknowledgement of \(channel)") }
            if wanted[channel] == nil { report("an acknowledgement of \(channel), which nobody asked for") }
            let presence = (try? JSONValue(parsing: data))?["presence"]
            let ids = presence?["ids"]?.arrayValue?.compactMap(\.stringValue) ?? []
            if Set(ids).count != ids.count { report("ids twice: \(data)") }
            if let presence,
                presence["count"]?.intValue != Int64(ids.count) || Set(presence["hash"]?.objectValue?.keys.map { $0 } ?? []) != Set(ids)
            {
                report("ids, hash and count differ: \(data)")
            }
            members[channel] = Set(ids)
        case "pusher_internal:subscription_count":
            if members[channel] == nil { report("a count of \(channel) without an acknowledgement") }
            counts[channel] = (try? JSONValue(parsing: data))?["subscription_count"]?.intValue.map { Int($0) }
        case "pusher_internal:member_added":
            if members[channel]?.insert(user(data)).inserted != true {
                report("\(data) added to \(channel) twice, or without acknowledgement")
            }
        case "pusher_internal:member_removed":
            if members[channel]?.remove(user(data)) == nil { report("\(data) removed from \(channel) without being there") }
        default:
            if members[channel] == nil { report("\(event) on \(channel) without an acknowledgement") }
            inOrder(event, channel)
        }
    }

    /// The first status covers all watched users, later ones only changes.
    private func watched(_ data: String) {
        let events = (try? JSONValue(parsing: data))?["events"]?.arrayValue ?? []
        if events.isEmpty { report("a status of nobody: \(data)") }
        for event in events {
            for id in event["user_ids"]?.arrayValue?.compactMap(\.stringValue) ?? [] {
                if !watchlist.contains(id) { report("a status of \(id), whom it does not watch") }
                let isThere = event["name"] == "online"
                if isOnline[id] == isThere { report("told twice that \(id) is \(isThere ? "online" : "offline")") }
                isOnline[id] = isThere
            }
        }
    }

    private func user(_ data: String) -> String {
        (try? JSONValue(parsing: data))?["user_id"]?.stringValue ?? ""
    }

    private func inOrder(_ event: String, _ channel: String) {
        let parts = event.split(separator: "/")
        guard parts.count == 3, let number = Int(parts[2]) else { return }
        let key = "\(parts[1]) \(channel)"
        if number <= newest[key] ?? -1 { report("\(event) on \(channel) behind number \(newest[key] ?? -1)") }
        newest[key] = number
    }
}
