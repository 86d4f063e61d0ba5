import HubCore
import Testing

struct OneOrManyTests {
    @Test("a list holds the values of an array, in its order", arguments: [0, 1, 2, 3, 10])
    func values(count: Int) {
        let expected = (0..<count).map { "value \($0)" }
        let list = OneOrMany(expected)
        #expect(Array(list) == expected && list.map { $0 } == expected && list.indices.map { list[$0] } == expected)
        #expect(list.count == count && list.isEmpty == (count == 0))
        #expect(list.first == expected.first && list.last == expected.last && list.reversed() == expected.reversed())
    }

    @Test("lists of the same values are equal, however they were made")
    func equal() {
        #expect(OneOrMany(one: 1) == [1] && OneOrMany(one: 1) == OneOrMany([1]) && OneOrMany(one: 1).hashValue == OneOrMany([1]).hashValue)
        #expect(OneOrMany(one: 1) != [2] && OneOrMany(one: 1) != [] && OneOrMany([1, 2]) != [1] && OneOrMany([1, 2]) == [1, 2])
    }
}
