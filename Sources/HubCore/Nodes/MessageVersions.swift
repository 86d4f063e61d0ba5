/// Versions of the messages between nodes that a build reads. All living nodes of a hub have one in common.
///
/// A change that the build before cannot read raises `highest`; the former version is read and written for one release more. New fields
/// at the end of a message need no new version, because readers ignore them.
package struct MessageVersions: Sendable, Equatable, CustomStringConvertible {
    package let lowest: UInt8
    package let highest: UInt8

    /// Versions of this build.
    package static let known = MessageVersions(1, 1)
    /// Versions of builds that tell none.
    package static let untold = MessageVersions(1, 1)

    package init(_ lowest: UInt8, _ highest: UInt8) {
        // 0 marks a node's probe of its own way.
        precondition(1 <= lowest && lowest <= highest, "versions \(lowest) to \(highest)")
        self.lowest = lowest
        self.highest = highest
    }

    /// - Parameter text: two numbers, as in Redis: `1-2`. Nil for any other text.
    package init?(_ text: String) {
        let numbers = text.split(separator: "-", omittingEmptySubsequences: false).map { UInt8($0) }
        guard numbers.count == 2, let lowest = numbers[0], let highest = numbers[1], 1 <= lowest, lowest <= highest else { return nil }
        self.init(lowest, highest)
    }

    package var description: String { "\(lowest)-\(highest)" }

    package func contains(_ version: UInt8) -> Bool { lowest <= version && version <= highest }

    /// Whether nodes of these builds can be one hub.
    package func overlaps(_ other: MessageVersions) -> Bool { lowest <= other.highest && other.lowest <= highest }
}
