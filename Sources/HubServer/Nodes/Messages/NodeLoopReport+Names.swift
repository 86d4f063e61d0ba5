internal import HubChannels
internal import HubDelivery
internal import PusherProtocol

/// A loop's report, as the other nodes read it: apps and channels by their names, because indices are a node's own.
extension NodeLoopReport {
    /// - Returns: nil: the report is for this node alone.
    static func named(_ report: LoopReport, _ table: AppTable) -> NodeLoopReport? {
        switch report {
        case .attached(let connection, _, let app, let channel, let user, let isBrowser, let ticket):
            .attached(connection, app: table.apps[app].id, channel: channel.text, user: user, isBrowser: isBrowser, ticket: ticket)
        case .stillAttached(let connection, _, let app, let channel, let user):
            .attached(connection, app: table.apps[app].id, channel: channel.text, user: user, isBrowser: false, ticket: nil)
        case .present(let connection, _, let app, let channel, let user, let isBrowser, let ticket, let state, let keepsWorking):
            .present(
                connection, app: table.apps[app].id, channel: channel.text, user: user, isBrowser: isBrowser, ticket: ticket,
                state: AppState(state), keepsWorking: keepsWorking)
        case .detached(let connection, let channel): .detached(connection, channel: channel.text)
        case .state(let connection, let state, let keepsWorking): .state(connection, AppState(state), keepsWorking: keepsWorking)
        case .disconnected(let connection, let departure): .disconnected(connection, mayReturn: departure.mayReturn)
        case .pinged(let events, let cursor): .pinged(events: events, cursor: cursor)
        case .proving(let event, let cursor): .proving(event: event, cursor: cursor)
        case .replayed(let connection, let tokens, let cursor): .replayed(connection, tokens: tokens, cursor: cursor)
        case .receipt(let connection, let cursor, _): .receipt(connection, cursor: cursor)
        case .definitionsRead, .presentRead: nil
        }
    }
}
