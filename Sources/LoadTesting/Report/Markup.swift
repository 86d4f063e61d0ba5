/// A piece of HTML or SVG. What comes from outside (URLs, names, answers of servers) gets in by `text` and as attributes' values only,
/// which both escape; names of elements and attributes are literals. So nothing measured can become markup.
package struct Markup: Sendable, Equatable {
    package private(set) var source: String

    /// Names and values in the order in which they are written; values may come from outside.
    package struct Attributes: ExpressibleByDictionaryLiteral, Sendable {
        fileprivate var source = ""

        package init(dictionaryLiteral elements: (StaticString, String)...) {
            for (name, value) in elements {
                source += " \(name)=\"\(Markup.escaped(value))\""
            }
        }
    }

    private init(source: String) {
        self.source = source
    }

    package static let nothing = Markup(source: "")

    package static func text(_ text: String) -> Markup {
        Markup(source: escaped(text))
    }

    package static func element(_ name: StaticString, _ attributes: Attributes = [:], _ children: [Markup] = []) -> Markup {
        var source = "<\(name)\(attributes.source)>"
        for child in children {
            source += child.source
        }
        return Markup(source: source + "</\(name)>")
    }

    /// An element that holds nothing but text.
    package static func leaf(_ name: StaticString, _ attributes: Attributes, _ text: String) -> Markup {
        element(name, attributes, [.text(text)])
    }

    package static func leaf(_ name: StaticString, _ text: String) -> Markup {
        leaf(name, [:], text)
    }

    /// An HTML element that has no end tag.
    package static func void(_ name: StaticString, _ attributes: Attributes) -> Markup {
        Markup(source: "<\(name)\(attributes.source)>")
    }

    /// A style sheet, which is never escaped: a literal.
    package static func style(_ sheet: StaticString) -> Markup {
        Markup(source: "<style>\(sheet)</style>")
    }

    package static func joined(_ parts: [Markup]) -> Markup {
        Markup(source: parts.map(\.source).joined())
    }

    /// Control characters, which no document may hold, become U+FFFD.
    private static func escaped(_ text: String) -> String {
        var result = ""
        result.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "'": result += "&#39;"
            case "\t", "\n": result.unicodeScalars.append(scalar)
            case "\u{0}"..."\u{1f}", "\u{7f}"..."\u{9f}", "\u{fffe}", "\u{ffff}": result.unicodeScalars.append("\u{fffd}")
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
