/// Part of all channels and users that one node owns at a time. The same on every node and in every version.
package enum Partition {
    /// Partitions of a hub.
    package static let count: Int32 = 64

    /// The channel's partition.
    package static func of(_ place: MemberPlace) -> Int32 { Int32(truncatingIfNeeded: stableHash(place.description) % UInt64(count)) }

    /// The partition whose owner sends the app's webhooks.
    package static func ofWebhooks(app: String) -> Int32 { of(MemberPlace(app: app, channel: "")) }

    /// FNV-1a, which is stable over processes, unlike `Hasher`.
    package static func stableHash(_ text: String) -> UInt64 {
        text.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3 }
    }
}
