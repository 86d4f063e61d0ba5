package import HubCore

/// The frames that the server sends, as JSON text in UTF-8.
///
/// Encodings of `data` differ, because each form is the only one that some client understands (docs/protocol.md, 1.4). Nearly all events
/// have a string that contains JSON, `pusher:error` has an object. No frame has a null member at the top and none lacks `data`;
/// pusher-websocket-java fails on either.
package enum ServerEvent {
    /// The first frame on every connection.
    /// - Parameter activityTimeoutSeconds: at least 1; pusher-js refuses 0.
    package static func connectionEstablished(socketID: SocketID, activityTimeoutSeconds: Int) -> [UInt8] {
        precondition(activityTimeoutSeconds > 0, "activity timeout of \(activityTimeoutSeconds) s")
        var output: [UInt8] = []
        output.reserveCapacity(establishedBytesMax)
        output.append(literal: #"{"event":"pusher:connection_established","data":"{\"socket_id\":\""#)
        socketID.append(to: &output)
        output.append(literal: #"\",\"activity_timeout\":"#)
        output.append(decimal: UInt64(activityTimeoutSeconds))
        output.append(literal: #"}"}"#)
        assert(output.count <= establishedBytesMax, "the first frame has \(output.count) bytes")
        return output
    }

    private static let establishedBytesMax = 160

    /// - Parameters:
    ///   - code: nil for everything that neither closes the connection nor is one of `ErrorCode`. Pysher and others
    ///     disconnect at codes from 4000 to 4299.
    ///   - message: for a developer; no client interprets it.
    package static func error(code: Int?, message: String) -> [UInt8] {
        assert(code.map { (4000...4399).contains($0) } ?? true, "error code \(code ?? 0)")
        var output = Array("{\"event\":\"pusher:error\",\"data\":{\"code\":".utf8)
        output += (code.map(String.init) ?? "null").utf8
        output += ",\"message\":".utf8
        JSONText.appendQuoted(message.utf8, to: &output)
        output += "}}".utf8
        return output
    }

    /// The frame sent before a close, with the same code and text.
    package static func error(_ closeCode: CloseCode) -> [UInt8] {
        error(code: Int(closeCode.code), message: closeCode.reason)
    }

    /// Sent only alongside a control PING, because PusherSwift, Java and .NET do not answer this event.
    package static func ping() -> [UInt8] { frame("pusher:ping", content: emptyObject) }
    /// The answer to `pusher:ping`.
    package static func pong() -> [UInt8] { frame("pusher:pong", content: emptyObject) }

    /// The acknowledgement on every channel that is no presence channel. Java hands any data but exactly `{}` to decryption
    /// on encrypted channels.
    package static func subscriptionSucceeded(channel: ChannelName) -> [UInt8] {
        frame("pusher_internal:subscription_succeeded", channel: channel.text, content: emptyObject)
    }

    /// The acknowledgement on a presence channel.
    /// - Parameter members: all of them, the joiner included, each once; `info` is compact JSON text, or nil.
    package static func presenceSucceeded(channel: ChannelName, members: [(id: String, info: [UInt8]?)]) -> [UInt8] {
        assert(members.count > 256 || Set(members.map { ExactText($0.id) }).count == members.count, "a member is listed twice")
        var data = Array("{\"presence\":{\"count\":\(members.count),\"ids\":[".utf8)
        for (index, member) in members.enumerated() {
            if index > 0 { data.append(UInt8(ascii: ",")) }
            JSONText.appendQuoted(member.id.utf8, to: &data)
        }
        data += "],\"hash\":{".utf8
        for (index, member) in members.enumerated() {
            if index > 0 { data.append(UInt8(ascii: ",")) }
            JSONText.appendQuoted(member.id.utf8, to: &data)
            data.append(UInt8(ascii: ":"))
            data += member.info ?? Array("null".utf8)
        }
        data += "}}}".utf8
        return frame("pusher_internal:subscription_succeeded", channel: channel.text, content: data)
    }

    /// - Parameter userInfo: compact JSON text, or nil.
    package static func memberAdded(channel: ChannelName, userID: String, userInfo: [UInt8]?) -> [UInt8] {
        var data = Array("{\"user_id\":".utf8)
        JSONText.appendQuoted(userID.utf8, to: &data)
        if let userInfo {
            data += ",\"user_info\":".utf8
            data += userInfo
        }
        data.append(UInt8(ascii: "}"))
        return frame("pusher_internal:member_added", channel: channel.text, content: data)
    }

    /// After the member's last connection has left.
    package static func memberRemoved(channel: ChannelName, userID: String) -> [UInt8] {
        var data = Array("{\"user_id\":".utf8)
        JSONText.appendQuoted(userID.utf8, to: &data)
        data.append(UInt8(ascii: "}"))
        return frame("pusher_internal:member_removed", channel: channel.text, content: data)
    }

    /// A refused subscription, for clients that listen on the channel; `error(code: nil, …)` is sent as well.
    /// - Parameters:
    ///   - channel: as the client sent it, valid or not.
    ///   - type: `AuthError`, `LimitReached` and the like.
    package static func subscriptionError(channel: String, type: String, error: String, status: Int) -> [UInt8] {
        var data = Array("{\"type\":".utf8)
        JSONText.appendQuoted(type.utf8, to: &data)
        data += ",\"error\":".utf8
        JSONText.appendQuoted(error.utf8, to: &data)
        data += ",\"status\":\(status)}".utf8
        return frame("pusher:subscription_error", channel: channel, content: data)
    }

    /// After the acknowledgement on a cache channel that holds no event.
    package static func cacheMiss(channel: ChannelName) -> [UInt8] {
        frame("pusher:cache_miss", channel: channel.text, content: emptyObject)
    }

    /// - Parameter count: connections, not users.
    package static func subscriptionCount(channel: ChannelName, count: Int) -> [UInt8] {
        frame(
            "pusher_internal:subscription_count", channel: channel.text,
            content: Array("{\"subscription_count\":\(count)}".utf8))
    }

    /// - Parameter userData: the string exactly as the client sent it.
    package static func signInSuccess(userData: String) -> [UInt8] {
        var data = Array("{\"user_data\":".utf8)
        JSONText.appendQuoted(userData.utf8, to: &data)
        data.append(UInt8(ascii: "}"))
        return frame("pusher:signin_success", content: data)
    }

    /// Watched users that came online or went offline. An empty list is left out; at least one list must hold a user.
    package static func watchlistEvents(online: [String], offline: [String]) -> [UInt8] {
        assert(!online.isEmpty || !offline.isEmpty, "the status of nobody is sent")
        var data = Array("{\"events\":[".utf8)
        var isFirst = true
        for (name, ids) in [("online", online), ("offline", offline)] where !ids.isEmpty {
            data += (isFirst ? "" : ",").utf8
            isFirst = false
            data += "{\"name\":\"\(name)\",\"user_ids\":[".utf8
            for (index, id) in ids.enumerated() {
                if index > 0 { data.append(UInt8(ascii: ",")) }
                JSONText.appendQuoted(id.utf8, to: &data)
            }
            data += "]}".utf8
        }
        data += "]}".utf8
        return frame("pusher_internal:watchlist_events", content: data)
    }

    /// An event of an application, once per publish and channel.
    /// - Parameters:
    ///   - userID: of the member who sent a client event on a presence channel; nil otherwise.
    ///   - eventID: of an event that is also sent as a push, so that an app can match the two; clients ignore it.
    package static func event(
        name: String, channel: ChannelName, data: DataLiteral, userID: String? = nil, eventID: String? = nil
    ) -> [UInt8] {
        var output: [UInt8] = []
        appendEvent(name: name, channel: channel, dataLiteral: data.bytes, userID: userID, eventID: eventID, to: &output)
        return output
    }

    /// The framed `event` of each channel, each written once into one array.
    ///
    /// The frames differ only in the channel; the rest is copied from the first frame.
    package static func eventFrames(
        name: String, channels: OneOrMany<ChannelName>, data: DataLiteral
    ) -> OneOrMany<ChannelFrame> {
        guard let first = channels.first else { return [] }
        let model = eventFrame(name: name, channel: first, data: data)
        if channels.count == 1 { return OneOrMany(one: ChannelFrame(first, model)) }
        return unsafe model.withUnsafeBytes { frame in
            let model = unsafe Frame.payload(of: frame)
            let tail = unsafe UnsafeRawBufferPointer(rebasing: model.suffix(data.bytes.count + eventTailBytes))
            let head = unsafe UnsafeRawBufferPointer(rebasing: model[..<(model.count - tail.count - first.text.utf8.count)])
            let frames = channels.map { unsafe ChannelFrame($0, Frame.text(head, $0.text, tail)) }
            assert(
                frames.last.map { $0.frame == Frame.text(event(name: name, channel: $0.channel, data: data)) } ?? false,
                "the frame of \(first) does not fit \(channels.count) channels")
            return OneOrMany(frames)
        }
    }

    private static func eventFrame(name: String, channel: ChannelName, data: DataLiteral) -> [UInt8] {
        guard isPlain(name) else { return Frame.text(event(name: name, channel: channel, data: data)) }
        let count = eventBytes + name.utf8.count + channel.text.utf8.count + data.bytes.count
        let frame = Frame.text(payloadBytes: count) { frame in
            frame.write(literal: #"{"event":""#)
            frame.write(text: name)
            frame.write(literal: #"","channel":""#)
            frame.write(text: channel.text)
            frame.write(literal: #"","data":"#)
            unsafe data.bytes.withUnsafeBytes { unsafe frame.write($0) }
            frame.write(literal: "}")
        }
        assert(frame == Frame.text(event(name: name, channel: channel, data: data)), "the frame of \(name) is not the event's")
        return frame
    }

    /// Bytes around name, channel and data of an event without user and id.
    private static let eventBytes = #"{"event":"","channel":"","data":}"#.utf8.count
    /// Bytes after the channel, not counting the data, of an event without user and id.
    private static let eventTailBytes = #"","data":}"#.utf8.count
    /// Most bytes around name, channel, data, user and id.
    private static let eventBytesMax = 64

    /// As `event`, appended to a buffer that the caller reuses. Grows it at most once.
    /// - Parameter dataLiteral: one JSON string token with its quotes.
    package static func appendEvent(
        name: String, channel: ChannelName, dataLiteral: some BidirectionalCollection<UInt8>, userID: String? = nil,
        eventID: String? = nil, to output: inout [UInt8]
    ) {
        assert(
            dataLiteral.count >= 2 && dataLiteral.first == UInt8(ascii: "\"") && dataLiteral.last == UInt8(ascii: "\""),
            "the data of \(dataLiteral.count) bytes is no string token")
        output.reserveCapacity(
            output.count + name.utf8.count + channel.text.utf8.count + dataLiteral.count + (userID?.utf8.count ?? 0) + eventBytesMax)
        output.append(literal: "{\"event\":")
        appendQuoted(name, to: &output)
        output.append(literal: ",\"channel\":\"")
        output.append(text: channel.text)
        output.append(literal: "\",\"data\":")
        output += dataLiteral
        if let userID {
            output += ",\"user_id\":".utf8
            appendQuoted(userID, to: &output)
        }
        if let eventID {
            output += ",\"event_id\":".utf8
            appendQuoted(eventID, to: &output)
        }
        output.append(UInt8(ascii: "}"))
    }

    private static let emptyObject = Array("{}".utf8)

    /// One of the protocol's own events; its data is a string with that content.
    private static func frame(_ event: StaticString, channel: String? = nil, content: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(content.count + content.count / 4 + (channel?.utf8.count ?? 0) + 96)
        output.append(literal: "{\"event\":\"")
        output.append(literal: event)
        output.append(UInt8(ascii: "\""))
        if let channel {
            output.append(literal: ",\"channel\":")
            appendQuoted(channel, to: &output)
        }
        output.append(literal: ",\"data\":")
        JSONText.appendQuoted(content, to: &output)
        output.append(UInt8(ascii: "}"))
        return output
    }

    /// Names and ids rarely need escapes and are then copied in one piece.
    private static func appendQuoted(_ text: String, to output: inout [UInt8]) {
        guard isPlain(text) else {
            JSONText.appendQuoted(text.utf8, to: &output)
            return
        }
        output.append(UInt8(ascii: "\""))
        output.append(text: text)
        output.append(UInt8(ascii: "\""))
    }

    private static func isPlain(_ text: String) -> Bool {
        unsafe text.utf8.withContiguousStorageIfAvailable { bytes in
            unsafe bytes.allSatisfy { $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
        } ?? false
    }
}
