internal import HubCore
internal import HubYAML
internal import Mustache

/// A notification text with `{{names}}`, checked when it is read, so that a publish can fail only for missing values.
///
/// Mustache renders it, without HTML escaping. Before, every name is replaced by the number of its tag (`t0`, `t1`, …). So the hub resolves
/// names itself, tells a variable from a section's condition, and can name a missing value.
///
/// Partials, inheritance, pragmas and changed delimiters are refused: a definition is one file.
package struct Template: Sendable, Equatable {
    /// The text as the operator wrote it.
    package let source: String
    let tags: [TemplateTag]
    /// The parsed template; nil without tags.
    private let compiled: MustacheTemplate?

    /// Equal sources with equally resolved tags.
    package static func == (a: Template, b: Template) -> Bool { a.source == b.source && a.tags == b.tags }

    /// Whether the text can differ between the recipients of one event.
    package var isPersonal: Bool {
        tags.contains { if case .context(.participant, _) = $0.name { true } else { false } }
    }

    /// Longest template in bytes: a gateway takes 4 KiB for the whole notification.
    static let bytesMax = 4096
    /// Deepest nesting of sections.
    static let depthMax = 8

    /// - Parameter placeholders: placeholders of the channel's name.
    init(_ source: String, placeholders: [ChannelPattern.Placeholder]) throws(TemplateMistake) {
        guard source.utf8.count <= Self.bytesMax else {
            throw TemplateMistake(message: "the text is longer than \(Self.bytesMax) bytes")
        }
        self.source = source
        guard source.contains("{{") else {
            tags = []
            compiled = nil
            return
        }
        var scan = TemplateScan(placeholders: placeholders)
        let numbered = try scan.numbered(source)
        tags = scan.tags
        do {
            compiled = try MustacheTemplate(string: numbered)
        } catch {
            throw TemplateMistake(message: "cannot be read as a template; look for braces without their partners")
        }
    }

    /// Whether the text is a single `{{tag}}`, so that it can stand for a value.
    var isOneTag: Bool {
        tags.count == 1 && tags[0].use == .variable && source.hasPrefix("{{") && source.hasSuffix("}}")
            && !source.dropFirst(2).contains("{{")
    }

    /// Value of the single tag, unconverted. A missing value is null and added to `problems`.
    func value(_ context: TemplateContext, problems: inout [String]) -> JSONValue {
        guard let tag = tags.first else { return .string(source) }
        let run = TemplateRun(tags: tags, context: context)
        let value = run.value(of: tag)
        problems += run.problems.filter { !problems.contains($0) }
        return value
    }

    /// The text with its values. Missing values are added to `problems`; the result is then useless.
    package func render(_ context: TemplateContext, problems: inout [String]) -> String {
        guard let compiled else { return source }
        let run = TemplateRun(tags: tags, context: context)
        let text = compiled.render(TemplateStackRoot(run: run))
        problems += run.problems.filter { !problems.contains($0) }
        return text
    }
}

/// Finds the tags of a template and rewrites it to their numbers.
private struct TemplateScan {
    let placeholders: [ChannelPattern.Placeholder]
    var tags: [TemplateTag] = []
    private var open: [(content: String, number: Int)] = []

    init(placeholders: [ChannelPattern.Placeholder]) { self.placeholders = placeholders }

    mutating func numbered(_ source: String) throws(TemplateMistake) -> String {
        var output = ""
        // Unicode scalars, because a combining mark after a brace would hide the brace in a character.
        var rest = source.unicodeScalars[...]
        while let start = rest.firstIndex(ofPair: "{") {
            output.unicodeScalars += rest[..<start]
            rest = rest[rest.index(start, offsetBy: 2)...]
            let mark = rest.first
            let isTriple = mark == "{"
            if let mark, "#^/!{&><$=%".unicodeScalars.contains(mark) { rest = rest.dropFirst() }
            guard let end = rest.firstIndex(ofPair: "}") else {
                throw TemplateMistake(message: "{{ without }}; to write two braces as text is not possible")
            }
            let content = String(rest[..<end]).trimmed
            rest = rest[rest.index(end, offsetBy: 2)...]
            if isTriple {
                guard rest.first == "}" else { throw TemplateMistake(message: "{{{ without }}}; two braces are enough") }
                rest = rest.dropFirst()
            }
            output += try rewritten(mark, content)
        }
        if let last = open.last {
            throw TemplateMistake(message: "the section {{#\(last.content)}} has no end; add {{/\(last.content)}}")
        }
        output.unicodeScalars += rest
        return output
    }

    private mutating func rewritten(_ mark: Unicode.Scalar?, _ content: String) throws(TemplateMistake) -> String {
        switch mark {
        case "!": return "{{!}}"
        case "#", "^":
            let tag = try append(content, mark == "#" ? .section : .invertedSection)
            guard open.count < Template.depthMax else {
                throw TemplateMistake(message: "sections are nested deeper than \(Template.depthMax)")
            }
            open.append((content, tag))
            return mark == "#" ? "{{#t\(tag)}}" : "{{^t\(tag)}}"
        case "/":
            guard let section = open.popLast() else {
                throw TemplateMistake(message: "{{/\(content)}} ends a section that was not begun")
            }
            guard section.content == content else {
                throw TemplateMistake(message: "{{/\(content)}} stands where {{/\(section.content)}} has to end its section")
            }
            return "{{/t\(section.number)}}"
        case ">", "<", "$":
            throw TemplateMistake(
                message: "{{\(mark.map(String.init) ?? "")\(content)}}: partials are not available; write the text here")
        case "=": throw TemplateMistake(message: "delimiters cannot be changed; use {{ and }}")
        case "%": throw TemplateMistake(message: "{{%…}} is not available; texts are never escaped")
        default:
            // Three braces: the library then writes the value without escaping, in every position of a line.
            return "{{{t\(try append(content, .variable))}}}"
        }
    }

    private mutating func append(_ content: String, _ use: TemplateTag.Use) throws(TemplateMistake) -> Int {
        tags.append(try .parse(content, use: use, placeholders: placeholders, isInSection: !open.isEmpty))
        return tags.count - 1
    }
}

extension Substring.UnicodeScalarView {
    fileprivate func firstIndex(ofPair scalar: Unicode.Scalar) -> Index? {
        var index = startIndex
        while index < endIndex {
            let next = self.index(after: index)
            if next < endIndex, self[index] == scalar, self[next] == scalar { return index }
            index = next
        }
        return nil
    }
}

extension String {
    /// The text without spaces and tabs at both ends.
    fileprivate var trimmed: String {
        let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        return String(drop(while: isSpace).reversed().drop(while: isSpace).reversed())
    }
}
