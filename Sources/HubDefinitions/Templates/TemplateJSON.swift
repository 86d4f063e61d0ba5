package import HubCore

/// A JSON value whose strings are templates: the `data`, `apns` and `android` blocks of a definition.
package indirect enum TemplateJSON: Sendable, Equatable {
    case literal(JSONValue)
    case text(Template)
    /// A single tag, which stands for its value: a number stays a number.
    case value(Template)
    case list([TemplateJSON])
    case object([String: TemplateJSON])

    /// Whether any text can differ between recipients of one event.
    package var isPersonal: Bool {
        switch self {
        case .literal: false
        case .text(let template), .value(let template): template.isPersonal
        case .list(let values): values.contains(where: \.isPersonal)
        case .object(let members): members.values.contains(where: \.isPersonal)
        }
    }

    /// Whether there are no tags to fill in.
    var isLiteral: Bool {
        switch self {
        case .literal: true
        case .text(let template), .value(let template): template.tags.isEmpty
        case .list(let values): values.allSatisfy(\.isLiteral)
        case .object(let members): members.values.allSatisfy(\.isLiteral)
        }
    }

    /// The value with its texts filled in. A `text` stays a text even if it is a single tag.
    func render(_ context: TemplateContext, problems: inout [String]) -> JSONValue {
        switch self {
        case .literal(let value): return value
        case .text(let template): return .string(template.render(context, problems: &problems))
        case .value(let template): return template.value(context, problems: &problems)
        case .list(let values): return .array(values.map { $0.render(context, problems: &problems) })
        case .object(let members):
            // Problems are listed in the same order every time: that of the keys.
            var rendered: [String: JSONValue] = [:]
            for key in members.keys.sorted() { rendered[key] = members[key]?.render(context, problems: &problems) }
            return .object(rendered)
        }
    }
}
