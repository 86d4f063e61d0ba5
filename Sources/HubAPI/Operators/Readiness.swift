/// The hub's answer to `/ready`. Any thread.
package struct Readiness: Sendable {
    /// Reason for refusing `/ready`, as a sentence; nil: ready.
    package let refusal: @Sendable () -> String?
    /// The hub is about to end: every request but a probe is refused.
    package let isClosing: @Sendable () -> Bool

    /// Both are called on any thread, at every request.
    package init(refusal: @escaping @Sendable () -> String?, isClosing: @escaping @Sendable () -> Bool) {
        self.refusal = refusal
        self.isClosing = isClosing
    }

    /// The answer while the hub stops.
    package static let shuttingDown = "the server is shutting down: send new work to another one"
}
