package import HubCore
package import PusherProtocol

/// Message of a node to all nodes, itself included.
package enum NodeMessage: Sendable, Equatable {
    /// An event for the subscribers of channels.
    case event(Event)
    /// End all connections of the user. The sender waits for `done` with the ticket.
    case terminate(app: String, user: String, ticket: UInt64)
    /// To the node that sent the ticket: what it asked for is done here.
    case done(node: UInt64, ticket: UInt64)
    /// A word of delivery, in its own bytes.
    case delivery(ArraySlice<UInt8>)
    /// A subscriber found the channel's cache empty.
    case cacheMiss(app: String, channel: ChannelName)

    /// An event, before it is framed.
    package struct Event: Sendable, Equatable {
        /// Id of the app.
        package var app: String
        package var name: String
        /// At least one.
        package var channels: OneOrMany<ChannelName>
        package var data: DataLiteral
        /// The connection to skip, of whatever node.
        package var excluded: SocketID?
        /// The member who sent it; nil: a backend, or a connection without a member id.
        package var user: String?
        /// A client sent it, so it is not cached.
        package var isClients: Bool

        package init(
            app: String, name: String, channels: OneOrMany<ChannelName>, data: DataLiteral, excluded: SocketID?, user: String? = nil,
            isClients: Bool = false
        ) {
            self.app = app
            self.name = name
            self.channels = channels
            self.data = data
            self.excluded = excluded
            self.user = user
            self.isClients = isClients
        }
    }
}

/// The bytes of a message: version, kind, and fields. A field is a length in four bytes, the highest first, and so many bytes.
extension NodeMessage {
    private enum Kind: UInt8 {
        case event = 1
        case terminate
        case done
        case delivery
        case cacheMiss
    }

    /// The message as it travels. Versions 1 and 2 differ in the number alone: 2 is the next build's, for tests of upgrades.
    package func bytes(_ version: UInt8) -> [UInt8] {
        var writer = FieldWriter()
        switch self {
        case .event(let event):
            writer.begin(version, Kind.event.rawValue)
            writer.add(event.app)
            writer.add(event.name)
            writer.add(UInt64(event.channels.count))
            for channel in event.channels { writer.add(channel.text) }
            writer.add(Array(event.data.bytes))
            writer.add(UInt64(event.data.contentByteCount))
            writer.add(event.excluded?.description ?? "")
            writer.add(UInt64(event.user == nil ? 0 : 1))
            writer.add(event.user ?? "")
            writer.add(UInt64(event.isClients ? 1 : 0))
        case .terminate(let app, let user, let ticket):
            writer.begin(version, Kind.terminate.rawValue)
            writer.add(app)
            writer.add(user)
            writer.add(ticket)
        case .done(let node, let ticket):
            writer.begin(version, Kind.done.rawValue)
            writer.add(node)
            writer.add(ticket)
        case .delivery(let bytes): return [version, Kind.delivery.rawValue] + bytes
        case .cacheMiss(let app, let channel):
            writer.begin(version, Kind.cacheMiss.rawValue)
            writer.add(app)
            writer.add(channel.text)
        }
        return writer.bytes
    }

    /// Nil for bytes in another version, or of a kind that this build does not know. Further fields are a newer build's, and ignored.
    package init?(_ bytes: [UInt8], _ versions: MessageVersions) {
        var reader = FieldReader(bytes)
        guard let (version, kind) = reader.begin(), versions.contains(version) else { return nil }
        switch Kind(rawValue: kind) {
        case .event:
            guard let event = Event(&reader) else { return nil }
            self = .event(event)
        case .terminate:
            guard let app = reader.text(), let user = reader.text(), let ticket = reader.number() else { return nil }
            self = .terminate(app: app, user: user, ticket: ticket)
        case .done:
            guard let node = reader.number(), let ticket = reader.number() else { return nil }
            self = .done(node: node, ticket: ticket)
        case .delivery: self = .delivery(bytes[2...])
        case .cacheMiss:
            guard let app = reader.text(), let channel = reader.text().flatMap({ ChannelName($0) }) else { return nil }
            self = .cacheMiss(app: app, channel: channel)
        case nil: return nil
        }
    }
}

extension NodeMessage.Event {
    fileprivate init?(_ reader: inout FieldReader) {
        guard let app = reader.text(), let name = reader.text(), let count = reader.number(), (1...1000).contains(count) else { return nil }
        var channels: [ChannelName] = []
        for _ in 0..<count {
            guard let channel = reader.text().flatMap({ ChannelName(allowingServerToUser: $0) }) else { return nil }
            channels.append(channel)
        }
        guard let data = reader.bytes(), let contentBytes = reader.number(), let excluded = reader.text(), let hasUser = reader.number(),
            let user = reader.text(), let isClients = reader.number()
        else { return nil }
        self.init(
            app: app, name: name, channels: OneOrMany(channels),
            data: DataLiteral(token: data[...], contentByteCount: Int(clamping: contentBytes)), excluded: SocketID(excluded),
            user: hasUser == 1 ? user : nil, isClients: isClients == 1)
    }
}
