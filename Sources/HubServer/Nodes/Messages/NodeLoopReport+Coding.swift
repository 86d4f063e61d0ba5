internal import HubCore
internal import HubDelivery

/// The bytes of a loop's report: most are receipts, which take some ten bytes each.
extension NodeLoopReport {
    private enum Kind: UInt64 {
        case receipt = 0
        case attached, present, presentUpTo, detached, state, disconnected, pinged, proving, replayed
    }

    func write(to writer: inout PackedWriter) {
        func begin(_ kind: Kind) { writer.add(kind.rawValue) }
        switch self {
        case .receipt(let connection, let cursor):
            begin(.receipt)
            writer.add(connection)
            writer.add(cursor)
        case .attached(let connection, let app, let channel, let user, let isBrowser, let ticket):
            begin(.attached)
            writer.add(connection)
            writer.add(app)
            writer.add(channel)
            writer.add(user)
            writer.add(isBrowser)
            writer.add(ticket) { $0.add($1) }
        case .present(let connection, let app, let channel, let user, let isBrowser, let ticket, let state, let keepsWorking):
            begin(.present)
            writer.add(connection)
            writer.add(app)
            writer.add(channel)
            writer.add(user)
            writer.add(isBrowser)
            writer.add(ticket)
            writer.add(state)
            writer.add(keepsWorking)
        case .presentUpTo(let ticket):
            begin(.presentUpTo)
            writer.add(ticket)
        case .detached(let connection, let channel):
            begin(.detached)
            writer.add(connection)
            writer.add(channel)
        case .state(let connection, let state, let keepsWorking):
            begin(.state)
            writer.add(connection)
            writer.add(state)
            writer.add(keepsWorking)
        case .disconnected(let connection, let mayReturn):
            begin(.disconnected)
            writer.add(connection)
            writer.add(mayReturn)
        case .pinged(let events, let cursor):
            begin(.pinged)
            writer.add(events) { $0.add($1) }
            writer.add(cursor)
        case .proving(let event, let cursor):
            begin(.proving)
            writer.add(event)
            writer.add(cursor)
        case .replayed(let connection, let tokens, let cursor):
            begin(.replayed)
            writer.add(connection)
            writer.add(tokens) { $0.add($1) }
            writer.add(cursor)
        }
    }

    static func read(_ reader: inout PackedReader) throws(PackedReader.Malformed) -> NodeLoopReport {
        guard let kind = Kind(rawValue: try reader.number()) else { throw .init() }
        switch kind {
        case .receipt: return .receipt(try reader.connection(), cursor: try reader.number())
        case .attached:
            return .attached(
                try reader.connection(), app: try reader.text(), channel: try reader.text(), user: try reader.optionalText(),
                isBrowser: try reader.flag(), ticket: try reader.optionalNumber())
        case .present:
            return .present(
                try reader.connection(), app: try reader.text(), channel: try reader.text(), user: try reader.optionalText(),
                isBrowser: try reader.flag(), ticket: try reader.number(), state: try reader.state(), keepsWorking: try reader.flag())
        case .presentUpTo: return .presentUpTo(ticket: try reader.number())
        case .detached: return .detached(try reader.connection(), channel: try reader.text())
        case .state: return .state(try reader.connection(), try reader.state(), keepsWorking: try reader.flag())
        case .disconnected: return .disconnected(try reader.connection(), mayReturn: try reader.flag())
        case .pinged: return .pinged(events: try reader.numbers(), cursor: try reader.number())
        case .proving: return .proving(event: try reader.number(), cursor: try reader.number())
        case .replayed: return .replayed(try reader.connection(), tokens: try reader.numbers(), cursor: try reader.number())
        }
    }
}
