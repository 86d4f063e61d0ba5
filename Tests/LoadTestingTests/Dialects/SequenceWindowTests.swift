import LoadTesting
import Testing

@Suite("SequenceWindow")
struct SequenceWindowTests {
    /// Lost, late and duplicated after these arrivals.
    private func counts(_ arrivals: [UInt32], from window: SequenceWindow = SequenceWindow()) -> [Int] {
        var window = window
        var counts = KindCounts()
        for arrival in arrivals {
            switch window.take(arrival) {
            case .inOrder: break
            case .gap(let count): counts.skipped += UInt64(count)
            case .late: counts.late += 1
            case .duplicate: counts.duplicated += 1
            }
        }
        return [Int(counts.lost), Int(counts.late), Int(counts.duplicated)]
    }

    @Test(
        "tells lost from late from twice",
        arguments: [
            ([0, 1, 2, 3], [0, 0, 0]), ([0, 2, 3], [1, 0, 0]), ([0, 2, 1, 3], [0, 1, 0]), ([0, 0, 1], [0, 0, 1]),
            ([0, 2, 2, 1, 1], [0, 1, 2]),
            ([3], [3, 0, 0]), ([3, 0, 1, 2], [0, 3, 0]), ([0, 40, 9], [38, 1, 0]), ([0, 40, 8], [39, 0, 1]),
            ([0, 1_000_000], [999_999, 0, 0]),
        ] as [([UInt32], [Int])])
    func findings(arrivals: [UInt32], expected: [Int]) {
        #expect(counts(arrivals) == expected)
    }

    @Test("begins with what comes first where a receiver joins late")
    func late() {
        #expect(counts([17, 18, 20], from: .fromFirstArrival) == [1, 0, 0])
        #expect(!SequenceWindow.fromFirstArrival.hasBegun)
    }
}
