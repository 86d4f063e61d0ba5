import Foundation

/// What a page consists of, read by a strict little parser: every element is closed, every attribute is quoted.
struct Outline {
    struct Broken: Error {
        var what: String
    }

    struct Element {
        var name: String
        var label: String?
        var text = ""
    }

    var elements: [Element] = []
    var attributes: [(name: String, value: String)] = []
    var rows: [[String]] = []

    init(_ html: String) throws {
        var rest = html[...]
        var open: [Int] = []
        while let start = rest.firstIndex(of: "<") {
            let text = try Self.decoded(rest[..<start])
            for index in open {
                elements[index].text += text
            }
            guard let end = rest[start...].firstIndex(of: ">") else {
                throw Broken(what: "a tag without an end")
            }
            let tag = rest[rest.index(after: start)..<end]
            rest = rest[rest.index(after: end)...]
            if tag.hasPrefix("!") {
                continue
            }
            if tag.hasPrefix("/") {
                guard let index = open.popLast(), elements[index].name == tag.dropFirst() else {
                    throw Broken(what: "</\(tag)> closes nothing")
                }
                if ["td", "th"].contains(elements[index].name) {
                    rows[rows.count - 1].append(elements[index].text)
                }
                continue
            }
            let name = String(tag.prefix { $0 != " " })
            let pairs = try Self.pairs(tag.dropFirst(name.count))
            attributes += pairs
            elements.append(Element(name: name, label: pairs.first { $0.name == "aria-label" }?.value))
            if name == "tr" {
                rows.append([])
            }
            if name == "style", let close = rest.range(of: "</style>") {
                rest = rest[close.upperBound...]
            } else if name != "meta" {
                open.append(elements.count - 1)
            }
        }
        guard open.isEmpty else {
            throw Broken(what: "<\(elements[open[0]].name)> is not closed")
        }
    }

    func texts(of name: String) -> [String] {
        elements.filter { $0.name == name }.map(\.text)
    }

    func labels(of name: String) -> [String] {
        elements.filter { $0.name == name }.compactMap(\.label)
    }

    func count(of name: String) -> Int {
        elements.filter { $0.name == name }.count
    }

    private static func pairs(_ text: Substring) throws -> [(name: String, value: String)] {
        var rest = text
        var result: [(name: String, value: String)] = []
        while !rest.isEmpty {
            guard rest.hasPrefix(" "), let equals = rest.firstIndex(of: "="), rest[equals...].dropFirst().hasPrefix("\"") else {
                throw Broken(what: "not an attribute: \(rest)")
            }
            let value = rest[equals...].dropFirst(2)
            guard let end = value.firstIndex(of: "\"") else {
                throw Broken(what: "an attribute without an end")
            }
            result.append((String(rest[..<equals].dropFirst()), try decoded(value[..<end])))
            rest = value[value.index(after: end)...]
        }
        return result
    }

    private static func decoded(_ text: Substring) throws -> String {
        var result = ""
        var rest = text
        while let start = rest.firstIndex(of: "&") {
            result += rest[..<start]
            let known = ["&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": "\"", "&#39;": "'"]
            guard let (name, character) = known.first(where: { rest[start...].hasPrefix($0.key) }) else {
                throw Broken(what: "a bare &")
            }
            result += character
            rest = rest[start...].dropFirst(name.count)
        }
        return result + rest
    }
}
