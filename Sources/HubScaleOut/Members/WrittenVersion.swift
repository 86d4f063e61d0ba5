package import HubCore

/// Version in which a node writes its messages: the highest one that all living nodes read, as far as the node knows.
///
/// It falls at once, and rises only after ten seconds in which nobody needed the lower one. Right after Redis lost its memory, the
/// beats of older nodes may be missing.
package struct WrittenVersion: Sendable, Equatable {
    /// Looks, half a second apart, without a node that needs the lower version.
    package static let looksMax = 20

    private let known: MessageVersions
    private var risingFor = 0
    /// The version.
    package private(set) var now: UInt8

    package init(_ known: MessageVersions) {
        self.known = known
        now = known.lowest
    }

    /// Looks once at all beats.
    /// - Parameter common: the highest version that all nodes with a beat read.
    package mutating func look(_ common: UInt8) {
        let common = max(common, known.lowest)
        risingFor = common > now ? risingFor + 1 : 0
        if common < now || risingFor >= Self.looksMax { (now, risingFor) = (common, 0) }
    }

    /// A look failed.
    package mutating func reset() { risingFor = 0 }
}
