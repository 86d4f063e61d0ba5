internal import PusherProtocol

/// Names a channel in a process that has several apps.
struct ChannelKey: Hashable {
    let app: Int
    let name: ChannelName

    /// Hashes without the app: every publish looks a name up, and few apps share a name.
    func hash(into hasher: inout Hasher) { hasher.combine(name) }

    /// The loop that decides about the channel's members. `Hasher` is seeded per process, so the home is stable while the loops live.
    func home(loopCount: Int) -> Int {
        loopCount == 1 ? 0 : Int(UInt(bitPattern: hashValue) % UInt(loopCount))
    }
}

/// The channels that have subscribers on this loop, by name.
struct ChannelRegistry {
    private var channels: [ChannelKey: Channel] = [:]

    subscript(app: Int, name: ChannelName) -> Channel? { channels[ChannelKey(app: app, name: name)] }

    var all: some Collection<Channel> { channels.values }

    mutating func insert(_ channel: Channel) {
        let former = channels.updateValue(channel, forKey: ChannelKey(app: channel.app, name: channel.name))
        assert(former == nil, "a loop has two channels \(channel.name)")
    }

    mutating func removeIfEmpty(_ channel: Channel) {
        assert(channels[ChannelKey(app: channel.app, name: channel.name)] === channel, "\(channel.name) is not the loop's channel")
        if channel.count == 0 { channels[ChannelKey(app: channel.app, name: channel.name)] = nil }
    }
}
