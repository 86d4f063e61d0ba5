internal import PusherProtocol

/// Reload of channel definitions, for channels that already have subscribers.
extension ChannelEngine {
    /// Checks every channel against the current definitions, and reports the subscribers of those with a definition.
    /// The last report is `definitionsRead`: every report after it was made by the new definitions.
    func definitionsChanged() {
        for channel in channels.all {
            let isDefined = traits(channel.name) != nil
            guard isDefined || channel.isWatched else { continue }
            for subscription in channel.subscriptions {
                guard let connection = connection(subscription.connection) else { continue }
                switch (channel.isWatched, isDefined) {
                case (false, _):
                    reportAttached(subscription, of: connection)
                    channel.raiseTicket(subscription.ticket)
                // No new ticket: an event in flight that was decided with this subscriber present is still meant for it.
                case (true, true):
                    reports.append(
                        .stillAttached(
                            connection.id, connection.socketID, app: channel.app, channel: channel.name,
                            user: subscription.user ?? connection.user?.id))
                case (true, false): reports.append(.detached(connection.id, channel: channel.name))
                }
            }
            channel.isWatched = isDefined
        }
        reports.append(.definitionsRead)
    }

    /// Reports every subscription to a channel with a definition as it is.
    func reportPresent(_ mark: UInt64) {
        for channel in channels.all where channel.isWatched {
            for subscription in channel.subscriptions {
                guard let connection = connection(subscription.connection) else { continue }
                reports.append(
                    .present(
                        connection.id, connection.socketID, app: channel.app, channel: channel.name,
                        user: subscription.user ?? connection.user?.id, isBrowser: connection.isBrowser, ticket: subscription.ticket,
                        connection.declared?.state, keepsWorking: connection.declared?.keepsWorking ?? false))
            }
        }
        reports.append(.presentRead(mark: mark, ticket: lastTicket))
    }
}
