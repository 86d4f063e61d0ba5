internal import HubChannels
internal import HubCore
internal import HubDelivery
internal import PusherProtocol

/// The bytes of a message: a kind, and its values in the order of their declaration.
extension DeliveryMessage {
    private enum Kind: UInt64 {
        case hello = 1
        case reports, publish, published, event, wasLetOut, connections
        case ask, heard, attend, attended, order, done, presence, present, pushes
        case forecast, forecasted
    }

    var bytes: [UInt8] {
        var writer = PackedWriter()
        func begin(_ kind: Kind) { writer.add(kind.rawValue) }
        switch self {
        case .hello(let hello):
            begin(.hello)
            writer.add(hello.tag)
            writer.add(hello.moreTag)
            writer.add(hello.loopCount)
            writer.add(hello.isQuestion)
        case .reports(let loop, let reports):
            begin(.reports)
            writer.add(loop)
            writer.add(reports) { $1.write(to: &$0) }
        case .publish(let publish):
            begin(.publish)
            publish.write(to: &writer)
        case .published(let asker, let ticket, let part):
            begin(.published)
            writer.add(asker)
            writer.add(ticket)
            part.write(to: &writer)
        case .event(let event):
            begin(.event)
            event.write(to: &writer)
        case .wasLetOut(let number, let tickets):
            begin(.wasLetOut)
            writer.add(number)
            writer.add(tickets) { $0.add($1) }
        case .connections(let node, let work):
            begin(.connections)
            writer.add(node)
            work.write(to: &writer)
        case .ask(let round):
            begin(.ask)
            writer.add(round)
        case .heard(let asker, let round, let newcomers):
            begin(.heard)
            writer.add(asker)
            writer.add(round)
            writer.add(newcomers)
        case .attend(let round, let partitions):
            begin(.attend)
            writer.add(round)
            writer.add(partitions.bits)
        case .attended(let asker, let round):
            begin(.attended)
            writer.add(asker)
            writer.add(round)
        case .order(let order, let ticket):
            begin(.order)
            writer.add(ticket) { $0.add($1) }
            order.write(to: &writer)
        case .done(let asker, let ticket):
            begin(.done)
            writer.add(asker)
            writer.add(ticket)
        case .presence(let ticket, let app, let channel, let users):
            begin(.presence)
            writer.add(ticket)
            writer.add(app)
            writer.add(channel)
            writer.add(users) { $0.add($1) }
        case .present(let asker, let ticket, let present):
            begin(.present)
            writer.add(asker)
            writer.add(ticket)
            let entries = present.sorted { $0.key < $1.key }
            writer.add(entries) { writer, entry in
                writer.add(entry.key)
                writer.add(entry.value.connections)
                writer.add(entry.value.state)
            }
            writer.addDetails(of: entries.map(\.value))
        case .pushes(let events):
            begin(.pushes)
            writer.add(events) { $0.add($1) }
        case .forecast(let forecast):
            begin(.forecast)
            forecast.write(to: &writer)
        case .forecasted(let asker, let ticket, let answer):
            begin(.forecasted)
            writer.add(asker)
            writer.add(ticket)
            answer.write(to: &writer)
        }
        return writer.bytes
    }

    /// Nil for bytes that this version does not understand.
    init?(_ bytes: ArraySlice<UInt8>) {
        var reader = PackedReader(bytes)
        do throws(PackedReader.Malformed) { self = try Self.read(&reader) } catch { return nil }
    }

    private static func read(_ reader: inout PackedReader) throws(PackedReader.Malformed) -> DeliveryMessage {
        guard let kind = Kind(rawValue: try reader.number()) else { throw .init() }
        switch kind {
        case .hello:
            return .hello(
                Hello(tag: try reader.number(), moreTag: try reader.number(), loopCount: try reader.count(), isQuestion: try reader.flag()))
        case .reports: return .reports(loop: try reader.count(), try reader.list(NodeLoopReport.read))
        case .publish: return .publish(try ForwardedPublish(&reader))
        case .published: return .published(asker: try reader.number(), ticket: try reader.number(), try PublishedPart.read(&reader))
        case .event: return .event(try ReleasedEvent(&reader))
        case .wasLetOut: return .wasLetOut(number: try reader.number(), tickets: try reader.numbers())
        case .connections: return .connections(node: try reader.number(), try ConnectionWork.read(&reader))
        case .ask: return .ask(round: try reader.number())
        case .heard: return .heard(asker: try reader.number(), round: try reader.number(), newcomers: try reader.count())
        case .attend: return .attend(round: try reader.number(), partitions: PartitionSet(bits: try reader.number()))
        case .attended: return .attended(asker: try reader.number(), round: try reader.number())
        case .order:
            let ticket = try reader.optionalNumber()
            return .order(try AttendanceOrder.read(&reader), ticket: ticket)
        case .done: return .done(asker: try reader.number(), ticket: try reader.number())
        case .presence:
            return .presence(
                ticket: try reader.number(), app: try reader.text(), channel: try reader.text(), users: try reader.texts())
        case .present:
            let (asker, ticket) = (try reader.number(), try reader.number())
            let entries = try reader.list { reader throws(PackedReader.Malformed) in
                (try reader.text(), ParticipantPresence(connections: try reader.count(), state: try reader.state()))
            }
            let detailed = try reader.details(of: entries.map(\.1))
            return .present(asker: asker, ticket: ticket, Dictionary(zip(entries.map(\.0), detailed), uniquingKeysWith: { $1 }))
        case .pushes: return .pushes(events: try reader.texts())
        case .forecast: return .forecast(try ForwardedForecast(&reader))
        case .forecasted: return .forecasted(asker: try reader.number(), ticket: try reader.number(), try ForecastAnswer.read(&reader))
        }
    }
}

extension DeliveryMessage.ConnectionWork {
    fileprivate func write(to writer: inout PackedWriter) {
        switch self {
        case .roles(let connection, let channel, let roles):
            writer.add(0)
            writer.add(connection)
            writer.add(channel)
            writer.add(roles) { writer, roles in writer.add(roles) { $0.add($1) } }
        case .replay(let connection, let channel, let token, let frames):
            writer.add(1)
            writer.add(connection)
            writer.add(channel)
            writer.add(token)
            writer.add(frames)
        case .prove(let event, let connections):
            writer.add(2)
            writer.add(event)
            writer.add(connections) { $0.add($1) }
        }
    }

    fileprivate static func read(_ reader: inout PackedReader) throws(PackedReader.Malformed) -> Self {
        switch try reader.number() {
        case 0:
            let (connection, channel) = (try reader.connection(), try reader.text())
            return .roles(connection, channel: channel, try reader.optional { reader throws(PackedReader.Malformed) in try reader.texts() })
        case 1:
            return .replay(try reader.connection(), channel: try reader.text(), token: try reader.number(), frames: try reader.field())
        case 2:
            return .prove(
                event: try reader.number(), try reader.list { reader throws(PackedReader.Malformed) in try reader.connection() })
        default: throw .init()
        }
    }
}

extension DeliveryMessage.AttendanceOrder {
    fileprivate func write(to writer: inout PackedWriter) {
        switch self {
        case .received(let receipt):
            writer.add(0)
            for text in [receipt.event, receipt.app, receipt.channel, receipt.user, receipt.device] { writer.add(text) }
            writer.add(receipt.recipient)
            writer.add(receipt.isOfNotification)
        case .deviceState(let app, let user, let device, let state, let keepsWorking):
            writer.add(1)
            for text in [app, user, device] { writer.add(text) }
            writer.add(state)
            writer.add(keepsWorking)
        case .signed(let socket, let app, let user, let device, let channel):
            writer.add(2)
            for text in [socket, app, user, device] { writer.add(text) }
            writer.add(channel)
        case .removed(let app, let session, let definition, let users, let isOver):
            writer.add(3)
            for text in [app, session, definition] { writer.add(text) }
            writer.add(users) { $0.add($1) }
            writer.add(isOver)
        case .rosterChanged(let app, let session, let user):
            writer.add(4)
            for text in [app, session, user] { writer.add(text) }
        }
    }

    fileprivate static func read(_ reader: inout PackedReader) throws(PackedReader.Malformed) -> Self {
        switch try reader.number() {
        case 0:
            return .received(
                AppReceipt(
                    event: try reader.text(), app: try reader.text(), channel: try reader.text(), user: try reader.text(),
                    device: try reader.text(), recipient: try reader.count(), isOfNotification: try reader.flag()))
        case 1:
            return .deviceState(
                app: try reader.text(), user: try reader.text(), device: try reader.text(), try reader.state(),
                keepsWorking: try reader.flag())
        case 2:
            return .signed(
                socket: try reader.text(), app: try reader.text(), user: try reader.text(), device: try reader.text(),
                channel: try reader.optionalText())
        case 3:
            return .removed(
                app: try reader.text(), session: try reader.text(), definition: try reader.text(), users: try reader.texts(),
                isOver: try reader.flag())
        case 4: return .rosterChanged(app: try reader.text(), session: try reader.text(), user: try reader.text())
        default: throw .init()
        }
    }
}

extension ForwardedPublish {
    fileprivate func write(to writer: inout PackedWriter) {
        writer.add(ticket)
        writer.add(app)
        writer.add(requests) { writer, request in
            writer.add(request.name)
            writer.add(request.channels) { $0.add($1) }
            writer.add(request.data)
            writer.add(request.excluded?.description)
            writer.add(request.id.text)
            writer.add(request.id.time)
        }
        writer.add(mayBeKnown)
        writer.add(key)
    }

    fileprivate init(_ reader: inout PackedReader) throws(PackedReader.Malformed) {
        ticket = try reader.number()
        app = try reader.text()
        requests = try reader.list { reader throws(PackedReader.Malformed) in
            Request(
                name: try reader.text(), channels: try reader.texts(), data: try reader.data(),
                excluded: try reader.optionalText().flatMap(SocketID.init),
                id: PublishID(text: try reader.text(), time: try reader.signed()))
        }
        mayBeKnown = try reader.flag()
        key = try reader.optionalText()
    }
}

extension PublishedPart {
    fileprivate func write(to writer: inout PackedWriter) {
        switch self {
        case .taken(let channels):
            writer.add(0)
            writer.add(channels) { writer, place in
                writer.add(place.request)
                writer.add(place.channel)
                writer.add(place.event)
            }
        case .refused(let channels, let refusal):
            writer.add(1)
            writer.add(channels) { writer, place in
                writer.add(place.request)
                writer.add(place.channel)
            }
            writer.add(refusal.status)
            writer.add(refusal.sentence)
        }
    }

    fileprivate static func read(_ reader: inout PackedReader) throws(PackedReader.Malformed) -> Self {
        switch try reader.number() {
        case 0:
            return .taken(
                try reader.list { reader throws(PackedReader.Malformed) in
                    (request: try reader.count(), channel: try reader.count(), event: try reader.optionalText())
                })
        case 1:
            let channels = try reader.list { reader throws(PackedReader.Malformed) in
                (request: try reader.count(), channel: try reader.count())
            }
            return .refused(channels, PublishRefusal(status: try reader.count(), sentence: try reader.text()))
        default: throw .init()
        }
    }
}

extension ReleasedEvent {
    fileprivate func write(to writer: inout PackedWriter) {
        for text in [app, channel, name] { writer.add(text) }
        writer.add(data)
        writer.add(eventID)
        writer.add(roles) { writer, roles in writer.add(roles) { $0.add($1) } }
        writer.add(attendedUpTo) { writer, nodes in
            writer.add(nodes.sorted { $0.key < $1.key }) { writer, node in
                writer.add(node.key)
                writer.add(node.value) { $0.add($1) }
            }
        }
        writer.add(receipt) { $0.add($1) }
        writer.add(excluded?.description)
        writer.add(isAgain)
        writer.add(serial)
    }

    fileprivate init(_ reader: inout PackedReader) throws(PackedReader.Malformed) {
        (app, channel, name) = (try reader.text(), try reader.text(), try reader.text())
        data = try reader.data()
        eventID = try reader.optionalText()
        roles = try reader.optional { reader throws(PackedReader.Malformed) in
            try reader.list { reader throws(PackedReader.Malformed) in try reader.optionalText() }
        }
        let nodes = try reader.optional { reader throws(PackedReader.Malformed) in
            try reader.list { reader throws(PackedReader.Malformed) in (try reader.number(), try reader.numbers()) }
        }
        attendedUpTo = nodes.map { Dictionary($0, uniquingKeysWith: { $1 }) }
        receipt = try reader.optionalNumber()
        excluded = try reader.optionalText().flatMap(SocketID.init)
        isAgain = try reader.flag()
        serial = try reader.number()
    }
}

// MARK: Values

extension PackedWriter {
    mutating func add(_ connection: ConnectionID) { add(connection.rawValue) }

    mutating func add(_ state: AppState) {
        switch state {
        case .foreground: add(0)
        case .background: add(1)
        case .unknown: add(2)
        }
    }

    mutating func add(_ data: DataLiteral) {
        add(Array(data.bytes))
        add(data.contentByteCount)
    }
}

extension PackedReader {
    mutating func connection() throws(Malformed) -> ConnectionID {
        let raw = try number()
        return ConnectionID(loop: Int(raw >> 56), slot: Int(raw >> 32 & 0xFF_FFFF), generation: UInt32(truncatingIfNeeded: raw))
    }

    mutating func state() throws(Malformed) -> AppState {
        switch try number() {
        case 0: .foreground
        case 1: .background
        case 2: .unknown
        default: throw Malformed()
        }
    }

    mutating func data() throws(Malformed) -> DataLiteral {
        let bytes = try field()
        return DataLiteral(token: bytes[...], contentByteCount: try count())
    }

    mutating func texts() throws(Malformed) -> [String] {
        try list { reader throws(Malformed) in try reader.text() }
    }

    mutating func numbers() throws(Malformed) -> [UInt64] {
        try list { reader throws(Malformed) in try reader.number() }
    }

    mutating func optionalNumber() throws(Malformed) -> UInt64? {
        try optional { reader throws(Malformed) in try reader.number() }
    }
}
