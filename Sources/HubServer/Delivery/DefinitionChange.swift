internal import HubAPI
internal import HubChannels
internal import HubDelivery
internal import PusherProtocol

/// A change of the channel definitions that is under way: from the moment the new ones are in force until every loop has told
/// who is in their channels.
///
/// Publishes wait meanwhile, a few milliseconds: one that was decided by the new definitions with the old attendance book would
/// send a push to somebody whom the socket reaches, and one that met the new roles with the old numbering would reach the wrong
/// side of a game.
struct DefinitionChange: Sendable {
    /// What was in force before; nil when that is not known of every seat, because one change overtook another.
    private let former: DefinitionSet?
    private var answersAwaited: Int
    /// In the order of their arrival, at most `DeliveryService.waitingMax`.
    private(set) var held: [PublishCommand] = []
    private var waiters: [CheckedContinuation<Void, Never>]
    private var isUnchanged: [ChannelName: Bool] = [:]

    init(from former: DefinitionSet, loopCount: Int, overtaking earlier: DefinitionChange?, done: CheckedContinuation<Void, Never>) {
        self.former = earlier == nil ? former : nil
        answersAwaited = loopCount + (earlier?.answersAwaited ?? 0)
        held = earlier?.held ?? []
        waiters = (earlier?.waiters ?? []) + [done]
    }

    /// Keeps a publish for later; false when too many are kept.
    mutating func hold(_ command: PublishCommand) -> Bool {
        guard held.count < DeliveryService.waitingMax else { return false }
        held.append(command)
        return true
    }

    /// A loop has told; true when it was the last one.
    mutating func loopAnswered() -> Bool {
        answersAwaited -= 1
        return answersAwaited == 0
    }

    /// Whether a channel has the definition that it had before, so that seats and roles in it are right as they are.
    mutating func keeps(_ definition: ChannelDefinition, of channel: ChannelName) -> Bool {
        if let known = isUnchanged[channel] { return known }
        let keeps = former?.match(channel: channel.text)?.definition == definition
        isUnchanged[channel] = keeps
        return keeps
    }

    /// Lets those go on who asked for the change.
    func finish() {
        for waiter in waiters { waiter.resume() }
    }
}
