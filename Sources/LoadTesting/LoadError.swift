/// Why a run could not be made, or did not hold: a sentence for whoever started it.
package struct LoadError: Error, CustomStringConvertible, Sendable {
    package let description: String
    /// What was asked for cannot be meant, as against: it was tried and failed.
    package let isUsage: Bool

    package init(_ description: String, isUsage: Bool = false) {
        self.description = description
        self.isUsage = isUsage
    }
}
