import HubCore
import Testing

struct OneOrManyTests {
    @Test("a list holds what was appended, in its order", arguments: [0, 1, 2, 3, 10])
    func appended(count: Int) {
        var list = OneOrMany<String>()
        for number in 0..<count { list.append("value \(number)") }
        let expected = (0..<count).map { "value \($0)" }
        #expect(Array(list) == expected)
        #expect(list.count == count && list.isEmpty == (count == 0))
        #expect(list.first == expected.first && list.last == expected.last)
    }

    @Test("lists of the same values are equal, however they were made")
    func equal() {
        for count in 0..<4 {
            let values = Array(0..<count)
            var appended = OneOrMany<Int>()
            for value in values { appended.append(value) }
            #expect(appended == OneOrMany(values) && appended.hashValue == OneOrMany(values).hashValue)
            #expect(appended != OneOrMany(values + [7]))
        }
        #expect(OneOrMany(one: 1) == [1] && OneOrMany(one: 1) != [2])
    }

    @Test("a copy keeps its values when another one grows", arguments: [1, 2, 3])
    func copies(count: Int) {
        let former = OneOrMany(Array(0..<count))
        var list = former
        list.append(9)
        #expect(former.count == count && list.count == count + 1)
    }
}
