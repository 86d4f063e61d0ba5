import HubCore

/// A way between the nodes for homes alone, which tell and ask about members. It carries nothing else.
package protocol HomesBackplane: Backplane {}

extension HomesBackplane {
    package var node: UInt64 { 0 }
    package var messageBytesMax: Int { 1 << 20 }
    package var messageVersion: UInt8 { MessageVersions.known.highest }
    package var living: Set<UInt64> { [] }
    package func giveUp(_ nodes: Set<UInt64>) {}
    package func shard(of app: String) -> Int { 0 }
    package func send(_ message: [UInt8], app: String, isKept: Bool, _ done: @escaping @Sendable (Bool) -> Void) { done(false) }
    package func admit(app: String, limit: Int, _ done: @escaping @Sendable (Bool?) -> Void) { done(nil) }
    package func count(app: String) {}
    package func release(app: String) {}
    package func channels(app: String, prefix: String, countsUsers: Bool) async -> [ChannelCounts]? { nil }
    package func channels(_ places: [MemberPlace]) async -> [ChannelCounts]? { nil }
    package func users(_ place: MemberPlace) async -> [String]? { nil }
    package func lastMessage(app: String) async -> StreamID? { nil }
    package func members(_ place: MemberPlace) async -> [String: [UInt64]]? { nil }
    package func connections(app: String) async -> Int? { nil }
}
