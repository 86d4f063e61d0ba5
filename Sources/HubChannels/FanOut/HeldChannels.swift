/// The channels of one turn. Each is retained once, when it is added: this saves a seventh of the fan-out time to small rooms.
///
/// Used on the loop's thread only. `removeAll` and `deinit` release the channels.
@safe struct HeldChannels: ~Copyable {
    private var list = unsafe Scratch<Unmanaged<Channel>>()

    deinit {
        for place in 0..<count { unsafe list.base[place].release() }
    }

    var count: Int { unsafe list.count }

    mutating func append(_ channel: Channel) { unsafe list.append(Unmanaged.passRetained(channel)) }

    mutating func removeAll() {
        for place in 0..<count { unsafe list.base[place].release() }
        unsafe list.count = 0
    }

    /// - Parameter place: from 0 to `count` - 1, in the order of adding; checked by assertions only.
    borrowing func with<Result>(_ place: Int, _ body: (Channel) -> Result) -> Result {
        assert((0..<count).contains(place), "channel \(place) of \(count)")
        return unsafe list.base[place]._withUnsafeGuaranteedRef(body)
    }

    borrowing func forEach(_ body: (Channel) -> Void) {
        for place in 0..<count { with(place, body) }
    }
}
