/// A piece of HTML or SVG. External text (URLs, names, servers' answers) enters only via `text` and attribute values, which are escaped.
/// Names of elements and attributes are literals, so no measured text can become markup.
package struct Markup: Sendable, Equatable {
    package private(set) var source: String

    /// Names and values in the order of writing; values may be external text.
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

    /// An element that contains only text.
    package static func leaf(_ name: StaticString, _ attributes: Attributes, _ text: String) -> Markup {
        element(name, attributes, [.text(text)])
    }

    package static func leaf(_ name: StaticString, _ text: String) -> Markup {
        leaf(name, [:], text)
    }

    /// An HTML element without an end tag.
    package static func void(_ name: StaticString, _ attributes: Attributes) -> Markup {
        Markup(source: "<\(name)\(attributes.source)>")
    }

    /// A style sheet, never escaped because it is a literal.
    package static func style(_ sheet: StaticString) -> Markup {
        Markup(source: "<style>\(sheet)</style>")
    }

    package static func joined(_ parts: [Markup]) -> Markup {
        Markup(source: parts.map(\.source).joined())
    }

    /// Replaces control characters, which no document may contain, by U+FFFD.
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
