package import HubCore
package import HubJSON

/// Limits of one publish; every app may set its own.
package struct PublishLimits: Hashable, Sendable {
    /// Bytes of one event's data in UTF-8, unescaped.
    package var eventDataBytesMax = 10_240
    /// Names in one publish, repeated ones included.
    package var channelsMax = 100
    /// Events in one batch.
    package var batchMax = 10

    /// The defaults.
    package init() {}

    /// Bytes of the largest body within the limits, for sizing buffers. Every byte of the data may be escaped as
    /// `\u00XX`. Some room is left for members that other servers know.
    package var eventBodyBytesMax: Int {
        6 * (eventDataBytesMax + 4 * EventName.charactersMax) + channelsMax * (ChannelName.charactersMax * 4 + 4) + 4096
    }

    /// Bytes of the largest batch within the limits.
    package var batchBodyBytesMax: Int {
        batchMax * (6 * (eventDataBytesMax + 4 * EventName.charactersMax) + ChannelName.charactersMax * 4 + 4096) + 64
    }
}

/// A refused publish: the HTTP status, and a sentence that names the member and the remedy.
package struct PublishError: Error, Equatable, CustomStringConvertible {
    /// 413 if a size limit is exceeded, else 400.
    package let status: Int
    /// A sentence for the publisher.
    package let message: String
    package var description: String { message }

    /// 400 or 413, and a sentence.
    package init(status: Int, message: String) {
        assert(status == 400 || status == 413, "a publish is refused with status \(status)")
        self.status = status
        self.message = message
    }
}

/// One event to publish, fully checked: the body of `POST /apps/{id}/events`, or one item of a batch.
package struct PublishRequest: Hashable, Sendable {
    /// At most `EventName.charactersMax` characters, none of the protocol's own names.
    package let name: String
    /// In the order given, each once, at least one.
    package let channels: OneOrMany<ChannelName>
    /// Passed on as sent.
    package let data: DataLiteral
    /// The connection that must not get the event.
    package let excludedSocketID: SocketID?
    /// Attributes of each channel in the response.
    package let attributes: ChannelAttributes
    /// The member `idempotency_key` of a single event, as it was sent: for libraries that cannot set headers.
    package let idempotencyKey: String?
    /// Time of the publish in milliseconds since 1970; nil means now.
    package let deliverAt: Int64?
    /// The sender only asks what would come of it.
    package let isDryRun: Bool

    /// Checked values; `parse` does the checks.
    package init(
        name: String, channels: OneOrMany<ChannelName>, data: DataLiteral, excludedSocketID: SocketID? = nil,
        attributes: ChannelAttributes = [], idempotencyKey: String? = nil, deliverAt: Int64? = nil, isDryRun: Bool = false
    ) {
        assert(!name.isEmpty && !EventName.isReserved(name), "the name \(name) was not checked")
        assert(!channels.isEmpty && Set(channels).count == channels.count, "\(channels.count) channels are none, or some stand twice")
        self.name = name
        self.channels = channels
        self.data = data
        self.excludedSocketID = excludedSocketID
        self.attributes = attributes
        self.idempotencyKey = idempotencyKey
        self.deliverAt = deliverAt
        self.isDryRun = isDryRun
    }

    /// The same publish without any part of the request's body, for whoever keeps it.
    package var detached: PublishRequest {
        PublishRequest(
            name: name, channels: channels, data: data.detached, excludedSocketID: excludedSocketID, attributes: attributes,
            idempotencyKey: idempotencyKey, deliverAt: deliverAt, isDryRun: isDryRun)
    }

    /// One event of the deprecated route: the name and the socket id are parameters, the whole body is the data.
    package static func parse(
        name: String?, socketID: String?, data: [UInt8], channel: ChannelName, limits: PublishLimits
    ) throws(PublishError) -> PublishRequest {
        try checkSize(data.count, at: "", limits: limits)
        guard let content = String(validating: data, as: UTF8.self) else {
            throw bad("the body is not valid UTF-8: send the event's data as text")
        }
        return PublishRequest(
            name: try eventName(name, at: ""), channels: OneOrMany(one: channel), data: DataLiteral(content: content),
            excludedSocketID: try socketID.flatMap { text throws(PublishError) in try Self.socketID(text, at: "") })
    }

    /// Parses the body of `POST /apps/{id}/events`. Unknown members are ignored, as several SDKs pass their own through.
    /// The result's data is a part of the body; see `detached`.
    /// - Parameter parser: of the calling thread, large enough for `limits.eventBodyBytesMax`; it holds another document
    ///   afterwards.
    package static func parse(
        event body: [UInt8], limits: PublishLimits, with parser: JSONParser
    ) throws(PublishError)
        -> PublishRequest
    {
        let members = EventMembers(try document(body, parser))
        let channels: OneOrMany<ChannelName>
        if let list = members.channels?.element, !list.isNull {
            channels = try PublishRequest.channels(list, parser.names, limits: limits)
        } else {
            channels = OneOrMany(
                one: try channel(
                    members, parser.names, at: "", missing: "channels is missing: give an array of 1 to \(limits.channelsMax) channel names"
                )
            )
        }
        return try event(
            members, channels: channels, body: body, parser.names, at: "", limits: limits, idempotencyKey: try idempotencyKey(members),
            isDryRun: try isDryRun(members, at: ""))
    }

    /// Parses the body of `POST /apps/{id}/batch_events`; one bad item refuses all of them.
    /// - Parameter parser: as for one event, large enough for `limits.batchBodyBytesMax`.
    package static func parse(
        batch body: [UInt8], limits: PublishLimits, with parser: JSONParser
    ) throws(PublishError)
        -> [PublishRequest]
    {
        guard let batch = try document(body, parser).member("batch"), batch.element.kind == .array else {
            throw bad("batch is missing: give an array of 1 to \(limits.batchMax) events")
        }
        let items = batch.elements
        guard !items.isEmpty, items.count <= limits.batchMax else {
            throw bad("batch has \(items.count) events: send 1 to \(limits.batchMax) at a time")
        }
        var requests: [PublishRequest] = []
        for (index, item) in items.enumerated() {
            let place = "batch[\(index)]."
            guard item.element.kind == .object else { throw bad("batch[\(index)] must be an object") }
            let members = EventMembers(item)
            let channel = try channel(members, parser.names, at: place, missing: "\(place)channel is missing: give one channel name")
            guard try !isDryRun(members, at: place) else { throw bad("\(place)dry_run is for one event: send it to /events") }
            requests.append(try event(members, channels: OneOrMany(one: channel), body: body, parser.names, at: place, limits: limits))
        }
        return requests
    }

    private static func document(_ body: [UInt8], _ parser: JSONParser) throws(PublishError) -> JSONSource {
        guard body.count <= parser.capacityBytes else {
            throw PublishError(
                status: 413, message: "The body of this request exceeds the allowed maximum (\(parser.capacityBytes) bytes)")
        }
        let root: JSONElement
        do {
            root = try parser.parse(body)
        } catch {
            throw bad("the body is not valid JSON: \(error.message)")
        }
        guard root.kind == .object else { throw bad("the body must be a JSON object") }
        return parser.source(of: root)
    }

    /// - Parameters:
    ///   - body: the text that was parsed.
    ///   - place: the object's path, written before member names in messages.
    private static func event(
        _ members: EventMembers, channels: OneOrMany<ChannelName>, body: [UInt8], _ names: TextMemory, at place: String,
        limits: PublishLimits, idempotencyKey: String? = nil, isDryRun: Bool = false
    ) throws(PublishError) -> PublishRequest {
        let name = try eventName(members.name?.element.string(from: names), at: place)
        guard let data = members.data else {
            throw bad("\(place)data is missing: give the event's data as a string")
        }
        // A string's size is known without copying it.
        try checkSize(data.element.stringCount ?? 0, at: place, limits: limits)
        let literal = DataLiteral(data, in: body)
        try checkSize(literal.contentByteCount, at: place, limits: limits)
        return PublishRequest(
            name: name, channels: channels, data: literal, excludedSocketID: try socketID(members, at: place),
            attributes: try attributes(members, at: place), idempotencyKey: idempotencyKey,
            deliverAt: try DeliveryTime.parse(members.deliverAt?.element, at: place), isDryRun: isDryRun)
    }

    private static func checkSize(_ byteCount: Int, at place: String, limits: PublishLimits) throws(PublishError) {
        guard byteCount > limits.eventDataBytesMax else { return }
        throw PublishError(
            status: 413,
            message: (place.isEmpty ? "" : "\(place)data: ")
                + "The data content of this event exceeds the allowed maximum (\(limits.eventDataBytesMax) bytes); "
                + "it has \(byteCount) bytes, send less or raise event_data_bytes_max")
    }

    private static func eventName(_ text: String?, at place: String) throws(PublishError) -> String {
        guard let name = text, !name.isEmpty else {
            throw bad("\(place)name is missing: give the event's name as a non-empty string")
        }
        guard name.utf8.count <= EventName.charactersMax || name.unicodeScalars.count <= EventName.charactersMax else {
            throw bad("\(place)name has more than \(EventName.charactersMax) characters: use a shorter event name")
        }
        guard !EventName.isReserved(name) else {
            throw bad("\(place)name begins with pusher: or pusher_internal:, which are reserved: use another event name")
        }
        return name
    }

    private static func channels(
        _ list: JSONElement, _ names: TextMemory, limits: PublishLimits
    ) throws(PublishError) -> OneOrMany<ChannelName> {
        guard list.kind == .array else { throw bad("channels must be an array of strings; use channel for a single name") }
        var elements = list.elements.makeIterator()
        if let only = elements.next(), elements.next() == nil { return OneOrMany(one: try knownName(only, names, at: "channels[0]")) }
        var distinct = DistinctNames(countMax: limits.channelsMax)
        var count = 0
        for element in list.elements {
            let name = try channelName(element, at: "channels[\(count)]")
            count += 1
            guard count <= limits.channelsMax else {
                throw bad("channels has more than \(limits.channelsMax) names: publish in several requests")
            }
            distinct.append(name)
        }
        guard count > 0 else { throw bad("channels is empty: give 1 to \(limits.channelsMax) channel names") }
        return OneOrMany(distinct.names)
    }

    private static func channel(
        _ members: EventMembers, _ names: TextMemory, at place: String, missing: @autoclosure () -> String
    ) throws(PublishError) -> ChannelName {
        guard let channel = members.channel?.element, !channel.isNull else { throw bad(missing()) }
        return try knownName(channel, names, at: "\(place)channel")
    }

    /// As `channelName`, from memory. Lists of many names take memory anyway, and would put all others out of `names`.
    private static func knownName(
        _ element: JSONElement, _ names: TextMemory, at place: @autoclosure () -> String
    ) throws(PublishError) -> ChannelName {
        if let text = element.string(from: names), let name = ChannelName(allowingServerToUser: text) { return name }
        return try channelName(element, at: place())
    }

    /// - Parameter place: built only for a message; for a hundred channels it would take a fifth of their cost.
    private static func channelName(_ element: JSONElement, at place: @autoclosure () -> String) throws(PublishError) -> ChannelName {
        guard let text = element.string else { throw bad("\(place()) must be a string") }
        guard let name = ChannelName(allowingServerToUser: text) else {
            throw bad("\(place()) '\(text.quotable(ChannelName.charactersMax))' is not allowed: \(ChannelName.rule)")
        }
        return name
    }

    private static func socketID(_ members: EventMembers, at place: String) throws(PublishError) -> SocketID? {
        guard let element = members.socketID?.element, !element.isNull else { return nil }
        return try socketID(element.string ?? "", at: place)
    }

    private static func socketID(_ text: String, at place: String) throws(PublishError) -> SocketID? {
        guard SocketID.isWellFormed(text) else {
            throw bad("\(place)socket_id must look like \"123.456\": send the id the client got when it connected, or leave it out")
        }
        return SocketID(text)
    }

    private static func idempotencyKey(_ members: EventMembers) throws(PublishError) -> String? {
        guard let element = members.idempotencyKey?.element, !element.isNull else { return nil }
        guard let text = element.string else { throw bad("idempotency_key must be a string") }
        return text
    }

    private static func isDryRun(_ members: EventMembers, at place: String) throws(PublishError) -> Bool {
        guard let element = members.dryRun?.element, !element.isNull else { return false }
        guard let flag = element.bool else { throw bad("\(place)dry_run must be true or false") }
        return flag
    }

    private static func attributes(_ members: EventMembers, at place: String) throws(PublishError) -> ChannelAttributes {
        guard let element = members.info?.element, !element.isNull else { return [] }
        guard let list = element.string else { throw bad("\(place)info must be a comma-separated string") }
        do {
            return try ChannelAttributes(parsing: list)
        } catch {
            throw bad("\(place)\(error.message)")
        }
    }

    private static func bad(_ message: String) -> PublishError {
        PublishError(status: 400, message: message)
    }
}

/// The members of one event that Tandem knows, found in one walk; of repeated names the first counts.
private struct EventMembers {
    var name: JSONSource?
    var data: JSONSource?
    var channel: JSONSource?
    var channels: JSONSource?
    var socketID: JSONSource?
    var info: JSONSource?
    var idempotencyKey: JSONSource?
    var deliverAt: JSONSource?
    var dryRun: JSONSource?

    init(_ event: JSONSource) {
        event.forEachMember { key, value in
            func take(_ member: inout JSONSource?, _ name: StaticString) {
                if member == nil, key.isString(name) { member = value }
            }
            // Switching on the length first means that most names are compared once.
            switch key.stringCount {
            case 4:
                take(&name, "name")
                take(&data, "data")
                take(&info, "info")
            case 7:
                take(&channel, "channel")
                take(&dryRun, "dry_run")
            case 8: take(&channels, "channels")
            case 9: take(&socketID, "socket_id")
            case 10: take(&deliverAt, "deliver_at")
            case 15: take(&idempotencyKey, "idempotency_key")
            default: break
            }
            return true
        }
    }
}
