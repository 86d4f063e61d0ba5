import HubCore
import Testing

@Suite("HTTPQuery")
struct HTTPQueryTests {
    private func written(_ parameters: String...) -> HTTPQuery {
        var query = HTTPQuery()
        for parameter in parameters { Array(parameter.utf8).withUnsafeBytes { query.append($0) } }
        return query
    }

    private func pairs(_ query: HTTPQuery, without name: StaticString = "") -> String {
        withUnsafeTemporaryAllocation(byteCount: query.bytes.count + 1, alignment: 1) { room in
            String(decoding: room[..<query.writePairs(without: name, to: room)], as: UTF8.self)
        }
    }

    @Test("gives back what was put in, whatever stands in names and values")
    func contents() {
        let parameters = [("a", "1"), ("", ""), ("b&c", "x=y&z"), ("a", "2"), ("d=e", "ü"), ("f", "")]
        let query = HTTPQuery(parameters.map { (name: $0.0, value: $0.1) })
        #expect(query.map(\.name) == parameters.map(\.0) && query.map(\.value) == parameters.map(\.1))
        #expect(query.count == 6 && !query.isEmpty && HTTPQuery().isEmpty)
        #expect(query.value("a") == "1" && query.value("d=e") == "ü" && query.value("f") == "" && query.value("g") == nil)
        #expect(query.bytes("b&c").map(Array.init) == Array("x=y&z".utf8))
    }

    @Test(
        "takes a whole query as its parameters one by one",
        arguments: ["a=1&b=2", "a=", "=", "=&=", "a=b=c&&", "a=1&b=2&c=3&d=4&e=5&f=6&g=7"])
    func whole(text: String) {
        var (taken, single) = (HTTPQuery(), HTTPQuery())
        let isWhole = text.split(separator: "&", omittingEmptySubsequences: false).allSatisfy { $0.contains("=") }
        #expect(Array(text.utf8).withUnsafeBytes { taken.take($0) } == isWhole)
        for parameter in text.split(separator: "&") where isWhole { Array(parameter.utf8).withUnsafeBytes { single.append($0) } }
        #expect(taken.map { "\($0)" } == single.map { "\($0)" } && taken.bytes == single.bytes)
        for name in ["a", "c", "g", ""] as [StaticString] { #expect(pairs(taken, without: name) == pairs(single, without: name)) }
    }

    @Test("takes nothing where a parameter is empty or has no =", arguments: ["", "a", "a&b=1", "a=1&", "&a=1", "a=1&&b=2"])
    func notWhole(text: String) {
        var query = HTTPQuery()
        #expect(!Array(text.utf8).withUnsafeBytes { query.take($0) })
        #expect(query.isEmpty && query.bytes.isEmpty)
    }

    @Test("knows its names in their order, and a parameter's value")
    func names() {
        let query = written("a=1", "bc=2", "a=3")
        #expect(query.areNamed(["a", "bc", "a"]))
        for other in [["a", "bc"], ["a", "bc", "a", "a"], ["bc", "a", "a"], ["a", "bd", "a"], ["a", "b", "a"]] as [[StaticString]] {
            #expect(!query.areNamed(other))
        }
        #expect(query.has("a", "1") && !query.has("a", "3") && query.has("bc", "2") && !query.has("b", "2") && !query.has("a", ""))
    }

    @Test("splits a parameter at its first =, and gives one without any an empty value")
    func splitting() {
        var query = written("a=1=2", "b", "=c", "")
        #expect(query.map(\.name) == ["a", "b", "", ""] && query.map(\.value) == ["1=2", "", "c", ""])
        query = written("b")
        query.appendToLastValue(";x".utf8)
        #expect(query.value("b") == ";x" && pairs(query) == "b=;x")
        query = written("k=a", "l=b")
        query.appendToLastValue(";x=1".utf8)
        #expect(query.value("l") == "b;x=1" && query.value("k") == "a")
    }

    @Test("writes the pairs that are signed, and knows whether they are in order")
    func signing() {
        let query = written("auth_key=k", "auth_signature=s", "auth_timestamp=1", "body_md5=m")
        #expect(pairs(query, without: "auth_signature") == "auth_key=k&auth_timestamp=1&body_md5=m")
        #expect(pairs(written("auth_signature=s", "a=1"), without: "auth_signature") == "a=1")
        #expect(pairs(written("a=&", "auth_signature=s", "auth_signature=t"), without: "auth_signature") == "a=&")
        #expect(pairs(written("x=1", "a=2", "x=3", "b=4", "x"), without: "x") == "a=2&b=4" && pairs(query, without: "b") == pairs(query))
        #expect(pairs(written("auth_signature=s"), without: "auth_signature") == "" && pairs(HTTPQuery()) == "")
        #expect(query.isSorted(without: "auth_signature") && written("a=2", "a=1").isSorted(without: "x"))
        #expect(written("b=1", "auth_signature=s", "c=2").isSorted(without: "auth_signature"))
        #expect(!written("b=1", "auth_signature=s", "a=2").isSorted(without: "auth_signature"))
        #expect(!written("ab=1", "a=1").isSorted(without: "x") && written("a=1", "ab=1").isSorted(without: "x"))
    }

    @Test("finds capital letters in names only, and calls what is beyond ASCII not sure")
    func cases() {
        #expect(written("a_z[0]=ABC", "@`{=Ü").isInLowerCase)
        for name in ["A", "aZ", "M", "ü", "Ü", "\u{212A}"] { #expect(!written("a=1", name + "=1").isInLowerCase, "\(name)") }
    }
}
