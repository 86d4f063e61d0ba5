package import PusherProtocol

/// Facts of one loop's turn for webhooks. Facts that no webhook of the app subscribes to are never made.
package final class FactLog {
    /// Per app, by index.
    var kinds: [ChannelFact.Kinds]
    private var facts: [ChannelFact] = []

    /// - Parameter kinds: that are wanted, by the app's index.
    package init(kinds: [ChannelFact.Kinds]) {
        self.kinds = kinds
    }

    func wants(_ kind: ChannelFact.Kinds, app: Int) -> Bool { kinds[app].contains(kind) }

    func note(app: Int, _ channel: ChannelName, _ event: ChannelFact.Event) {
        if wants(event.kind, app: app) { facts.append(ChannelFact(app: app, channel: channel, event: event)) }
    }

    func take() -> [ChannelFact] {
        if facts.isEmpty { return [] }
        defer { facts.removeAll() }
        return facts
    }
}
