package import HubJSON

/// One parsed frame from a client. The engine checks the channel's name, the signature and the permission.
package enum ClientEvent: Hashable, Sendable {
    case ping
    case pong
    /// Empty strings and nulls, which some clients send for absent values, are nil.
    case subscribe(channel: String, auth: String?, channelData: String?)
    case unsubscribe(channel: String)
    case signIn(auth: String, userData: String)
    /// A `client-` event. A `user_id` that the client put into the frame has been dropped.
    case client(name: String, channel: String, data: DataLiteral)
    /// Any other event name.
    case unknown(name: String)
    /// An unreadable frame, with the sentence for `pusher:error` (code null; the connection stays open).
    case malformed(reason: String)

    /// Parses one text frame. Never throws: everything that is not a known event is `unknown` or `malformed`.
    /// - Parameters:
    ///   - frame: a whole message; read only during the call.
    ///   - parser: of the calling thread; it holds another document afterwards.
    package static func parse(_ frame: UnsafeRawBufferPointer, with parser: JSONParser) -> ClientEvent {
        do {
            return try parse(root: unsafe parser.parse(frame), with: parser)
        } catch {
            return .malformed(reason: "Invalid frame: the message is not valid JSON: \(error.message)")
        }
    }

    /// As above, for a frame in an array.
    package static func parse(_ frame: [UInt8], with parser: JSONParser) -> ClientEvent {
        unsafe frame.withUnsafeBytes { unsafe parse($0, with: parser) }
    }

    private static func parse(root: JSONElement, with parser: JSONParser) throws(JSONError) -> ClientEvent {
        guard let event = root.find("event"), event.kind == .string else {
            return .malformed(reason: "Invalid frame: the message must be a JSON object whose event is a string")
        }
        if event.isString("pusher:ping") { return .ping }
        if event.isString("pusher:pong") { return .pong }
        if event.isString("pusher:subscribe") { return try subscribe(root, parser) }
        if event.isString("pusher:unsubscribe") { return try unsubscribe(root, parser) }
        if event.isString("pusher:signin") { return try signIn(root, parser) }
        let name = event.string ?? ""
        return EventName.isClientEvent(name) ? client(name, root, parser) : .unknown(name: name)
    }

    private static func subscribe(_ root: JSONElement, _ parser: JSONParser) throws(JSONError) -> ClientEvent {
        let data = try payload(root, parser)
        guard let channel = data?.find("channel")?.string else {
            return .malformed(reason: "Invalid subscribe: data must be an object whose channel is a string")
        }
        let auth = optionalString(data?.find("auth"))
        let channelData = optionalString(data?.find("channel_data"))
        guard auth != .notAString, channelData != .notAString else {
            return .malformed(reason: "Invalid subscribe: auth and channel_data must be strings")
        }
        return .subscribe(channel: channel, auth: auth.value, channelData: channelData.value)
    }

    private static func unsubscribe(_ root: JSONElement, _ parser: JSONParser) throws(JSONError) -> ClientEvent {
        guard let channel = try payload(root, parser)?.find("channel")?.string else {
            return .malformed(reason: "Invalid unsubscribe: data must be an object whose channel is a string")
        }
        return .unsubscribe(channel: channel)
    }

    private static func signIn(_ root: JSONElement, _ parser: JSONParser) throws(JSONError) -> ClientEvent {
        let data = try payload(root, parser)
        guard let auth = data?.find("auth")?.string, let userData = data?.find("user_data")?.string else {
            return .malformed(reason: "Invalid signin: data must be an object whose auth and user_data are strings")
        }
        return .signIn(auth: auth, userData: userData)
    }

    private static func client(_ name: String, _ root: JSONElement, _ parser: JSONParser) -> ClientEvent {
        guard let channel = root.find("channel")?.string, !channel.isEmpty, let data = parser.source(of: root).member("data")
        else { return .malformed(reason: "Invalid client event (must contain channel and data)") }
        guard name.unicodeScalars.count <= EventName.charactersMax else {
            return .malformed(
                reason: "Invalid client event: its name has more than \(EventName.charactersMax) characters")
        }
        return .client(name: name, channel: channel, data: DataLiteral(data))
    }

    /// The `data` of a `pusher:` frame: an object in all official clients, a string that holds an object in others.
    /// Parsing such a string invalidates `root`.
    private static func payload(_ root: JSONElement, _ parser: JSONParser) throws(JSONError) -> JSONElement? {
        guard let data = root.find("data") else { return nil }
        guard let text = data.string else { return data }
        return try parser.parse(text)
    }

    private enum OptionalString: Equatable {
        case value(String)
        case none
        case notAString

        var value: String? { if case .value(let text) = self { text } else { nil } }
    }

    private static func optionalString(_ element: JSONElement?) -> OptionalString {
        guard let element, !element.isNull else { return .none }
        guard let text = element.string else { return .notAString }
        return text.isEmpty ? .none : .value(text)
    }
}
