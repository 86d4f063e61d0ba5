internal import PusherProtocol

/// What changed channel definitions mean for channels that have subscribers already.
extension ChannelEngine {
    /// Judges every channel by the definitions that are in force now, and tells delivery who is in those that have one. Ends with
    /// `definitionsRead`: what is reported behind it was judged by the new definitions, too.
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
                // Without a new ticket: an event on its way, decided when this subscriber was known, is still meant for it.
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
}
