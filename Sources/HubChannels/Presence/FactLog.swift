internal import PusherProtocol

/// Collects what webhooks have to know of one loop's turn; whatever no webhook of the app wants is never made.
final class FactLog {
    private let kinds: [ChannelFact.Kinds]
    private var facts: [ChannelFact] = []

    /// - Parameter kinds: by index of the app.
    init(kinds: [ChannelFact.Kinds]) {
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
