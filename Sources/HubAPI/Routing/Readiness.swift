/// The hub's answer to `/ready`. Any thread.
package struct Readiness: Sendable {
    /// Why `/ready` is refused, as a sentence; nil: it is not.
    package let refusal: @Sendable () -> String?
    /// Every request but a probe is refused: the hub is about to end.
    package let isClosing: @Sendable () -> Bool

    package init(refusal: @escaping @Sendable () -> String?, isClosing: @escaping @Sendable () -> Bool) {
        self.refusal = refusal
        self.isClosing = isClosing
    }

    /// The answer while the hub stops.
    package static let shuttingDown = "the server is shutting down: send new work to another one"
}
