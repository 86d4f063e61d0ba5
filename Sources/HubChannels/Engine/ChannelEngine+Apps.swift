internal import HubCore
internal import PusherProtocol

/// Apps that are added, changed or removed while the hub runs.
extension ChannelEngine {
    /// Connections of disabled or removed apps that are closed in one turn, so that no other client waits for them.
    static let dismissedPerTurn = 64

    /// Takes over the directory's table if it is newer. Messages of a sibling may concern an app of the newest table, so the loop's owner
    /// calls this before it hands over messages.
    package func adoptApps() {
        guard directory.version != appsVersion else { return }
        appsVersion = directory.version
        apps = directory.table
        home.apps = apps.apps
        facts.kinds = apps.apps.map(\.factKinds)
        for connection in connections.values {
            connection.app = apps.apps[connection.app.index]
            if !connection.app.isEnabled || connection.app.isRemoved { dismissed.append(connection.id) }
        }
    }

    /// Closes some of the connections whose app is disabled (4003) or removed (4001).
    func closeDismissed() {
        guard !dismissed.isEmpty else { return }
        for id in dismissed.suffix(Self.dismissedPerTurn) {
            guard let app = connection(id)?.app else { continue }
            if app.isRemoved {
                refuse(id, .applicationDoesNotExist)
            } else if !app.isEnabled {
                refuse(id, .applicationDisabled)
            }
        }
        dismissed.removeLast(min(dismissed.count, Self.dismissedPerTurn))
    }
}
