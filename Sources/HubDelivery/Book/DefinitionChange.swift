internal import HubDefinitions

/// A change of the channel definitions: from the moment the new ones are in force until every loop has reported its subscriptions.
///
/// Publishes wait meanwhile, for a few milliseconds. A decision by the new definitions with the old attendance would push to people whom
/// the socket reaches. A decision by the new roles with the old numbering would reach the wrong side of a game.
struct DefinitionChange: Sendable {
    /// The former definitions; nil where one change overtook another, so that they are not known for every seat.
    private let former: DefinitionSet?
    private var answersAwaited: Int
    /// In the order of their arrival, at most `DeliveryBook.waitingMax`.
    private(set) var held: [DeliveryBook.Publish] = []
    /// Callers that wait for the change, by the caller's own names.
    let waiters: [UInt64]
    private var isUnchanged: [String: Bool] = [:]

    init(from former: DefinitionSet, loopCount: Int, overtaking earlier: DefinitionChange?, waiter: UInt64) {
        self.former = earlier == nil ? former : nil
        answersAwaited = loopCount + (earlier?.answersAwaited ?? 0)
        held = earlier?.held ?? []
        waiters = (earlier?.waiters ?? []) + [waiter]
    }

    /// Keeps a publish for later; false when too many are kept.
    mutating func hold(_ publish: DeliveryBook.Publish) -> Bool {
        guard held.count < DeliveryBook.waitingMax else { return false }
        held.append(publish)
        return true
    }

    /// A loop has reported; true for the last one.
    mutating func loopAnswered() -> Bool {
        assert(answersAwaited > 0, "more answers than loops")
        answersAwaited -= 1
        return answersAwaited == 0
    }

    /// Whether a channel has the definition that it had before, so that seats and roles in it are right as they are.
    mutating func keeps(_ definition: ChannelDefinition, of channel: String) -> Bool {
        if let known = isUnchanged[channel] { return known }
        let keeps = former?.match(channel: channel)?.definition == definition
        isUnchanged[channel] = keeps
        return keeps
    }
}
