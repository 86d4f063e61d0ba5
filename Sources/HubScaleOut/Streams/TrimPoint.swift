package import HubCore

/// How much of a stream may go: what lies 30 seconds of Redis' clock, or 256 MB, behind the last entry read.
///
/// A clock that is ahead would wipe the whole stream, so only ids that were read count, never this machine's time.
package struct TrimPoint: Sendable {
    /// Milliseconds that stay.
    package static let keptMilliseconds: UInt64 = 30_000
    /// Bytes that stay.
    package static let keptBytes = 256 << 20
    /// Distance of two remembered places in bytes.
    private static let stepBytes = 1 << 20

    private var last = StreamID.zero
    private var total = 0
    /// Places with the bytes before them, oldest first.
    private var places: [(id: StreamID, bytes: Int)] = []

    package init() {}

    /// Counts an entry that was read.
    package mutating func read(_ id: StreamID, bytes: Int) {
        guard id > last else { return }
        if places.last.map({ total - $0.bytes >= Self.stepBytes }) ?? true { places.append((id, total)) }
        (last, total) = (id, total + bytes)
        while places.count > 1, total - places[1].bytes >= Self.keptBytes { places.removeFirst() }
    }

    /// The oldest entry that stays; nil: nothing was read yet, or nothing may go.
    package var minimum: StreamID? {
        guard last > .zero else { return nil }
        let byTime = StreamID(milliseconds: last.milliseconds > Self.keptMilliseconds ? last.milliseconds - Self.keptMilliseconds : 0)
        guard let first = places.first, total - first.bytes >= Self.keptBytes else { return byTime }
        return max(byTime, first.id)
    }

    /// The stream is a new one.
    package mutating func restart() { self = TrimPoint() }
}
