/// Which loop gets the next connection: one of those that hold fewest, and among equals by turns that keep step with nobody.
///
/// The acceptor cannot know what a connection will be. Where publishers and sockets come in turns, a fixed order among equals would put
/// all publishers on one loop and all sockets on the other: even in number, and not in work. So each round of connections begins at
/// another loop, by multiples of the golden ratio, which stay spread over every pattern that repeats.
struct Placement {
    private var placed = 0

    /// 2^64 divided by the golden ratio.
    private static let stride: UInt64 = 0x9E37_79B9_7F4A_7C15

    /// The index of the loop to use, given how many connections each of them holds. `loads` is not empty.
    mutating func next(loads: [Int]) -> Int {
        let count = loads.count
        let round = UInt64(placed / count)
        placed &+= 1
        let first = Int((round &* Self.stride).multipliedFullWidth(by: UInt64(count)).high)
        var best = first
        for step in 1..<count {
            let index = (first + step) % count
            if loads[index] < loads[best] { best = index }
        }
        return best
    }
}
