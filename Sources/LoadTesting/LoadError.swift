/// Why a run failed or could not start: a message for its operator.
package struct LoadError: Error, CustomStringConvertible, Sendable {
    package let description: String
    /// Whether the request itself was invalid, as opposed to a failed attempt.
    package let isUsage: Bool

    package init(_ description: String, isUsage: Bool = false) {
        self.description = description
        self.isUsage = isUsage
    }
}
