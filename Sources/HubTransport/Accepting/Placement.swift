/// The choice of a loop for the next connection: the one that holds fewest, and among equals in an order without a
/// period.
///
/// The acceptor cannot know a connection's later work. If publishers and sockets alternate, a fixed order among equals
/// would put all publishers on one loop and all sockets on the other. Each round of connections therefore begins at
/// another loop, by multiples of the golden ratio, which stay spread over every repeating pattern.
struct Placement {
    private var placed = 0

    /// 2^64 divided by the golden ratio.
    private static let stride: UInt64 = 0x9E37_79B9_7F4A_7C15

    /// The index of the loop to use. `loads` holds each loop's number of connections and is not empty.
    mutating func next(loads: [Int]) -> Int {
        let count = loads.count
        let round = UInt64(placed / count)
        placed &+= 1
        let first = Int((round &* Self.stride).multipliedFullWidth(by: UInt64(count)).high)
        assert((0..<count).contains(first), "loop \(first) of \(count) comes first")
        var best = first
        for step in 1..<count {
            let index = (first + step) % count
            if loads[index] < loads[best] { best = index }
        }
        return best
    }
}
