internal import HubCore
internal import HubYAML

/// A `{{tag}}` of a template that looks up a value.
struct TemplateTag: Sendable, Equatable {
    enum Use: Sendable { case variable, section, invertedSection }

    enum Name: Sendable, Equatable {
        /// `{{.}}`: the value of the enclosing section.
        case current
        /// A name with a known root: `session.number`, `event.time`, `data.x`.
        case context(TemplateRoot, [String])
        /// A bare name: a member of the enclosing section's value, a placeholder of the channel's name, or published data.
        case bare([String])
    }

    let use: Use
    let name: Name
    /// The name as written.
    let text: String
    /// Functions with the innermost last: `{{uppercased(first(x))}}` has `uppercased, first`.
    let functions: [TemplateFunction]
}

/// First parts of dotted names that mean something else than published data.
enum TemplateRoot: String, Sendable, CaseIterable {
    case session, participant, event, data

    /// Names under the root; nil for any.
    var members: [String]? {
        switch self {
        case .session: ["id", "number", "join_code", "attributes"]
        // The e-mail is missing on purpose: notifications are shown on locked screens.
        case .participant: ["id", "number", "name", "role"]
        case .event: ["id", "name", "time"]
        case .data: nil
        }
    }
}

/// A mistake in a template, as a sentence for the mistake of its file and line.
struct TemplateMistake: Error, Equatable {
    let message: String
}

extension TemplateTag {
    /// Parses a tag.
    /// - Parameters:
    ///   - content: text between the braces, without the mark of a section.
    ///   - isInSection: whether `{{.}}` has a meaning.
    static func parse(
        _ content: String, use: Use, placeholders: [ChannelPattern.Placeholder], isInSection: Bool
    )
        throws(TemplateMistake)
        -> TemplateTag
    {
        var functions: [TemplateFunction] = []
        var rest = content[...]
        while let bracket = rest.firstIndex(of: "(") {
            let name = String(rest[..<bracket])
            guard let function = TemplateFunction(rawValue: name) else {
                let known = TemplateFunction.allCases.map(\.rawValue)
                throw TemplateMistake(
                    message: "unknown template function \(YAMLNode.quoted(name))\(NearestName.hint(for: name, among: known)) "
                        + "known functions: \(known.joined(separator: ", "))")
            }
            if function.isTest && !functions.isEmpty {
                throw TemplateMistake(message: "\(name)() gives true or false, which \(functions[0].rawValue)() cannot take")
            }
            functions.append(function)
            rest = rest[rest.index(after: bracket)...]
        }
        let name = rest.prefix { $0 != ")" }
        guard rest[name.endIndex...].elementsEqual(repeatElement(")", count: functions.count)) else {
            throw TemplateMistake(message: "brackets that do not match in {{\(content.quotable(60))}}; write {{function(name)}}")
        }
        return TemplateTag(
            use: use, name: try parseName(String(name), placeholders: placeholders, isInSection: isInSection), text: String(name),
            functions: functions)
    }

    private static func parseName(
        _ text: String, placeholders: [ChannelPattern.Placeholder], isInSection: Bool
    )
        throws(TemplateMistake)
        -> Name
    {
        if text == "." {
            guard isInSection else {
                throw TemplateMistake(message: "{{.}} means the value of a section and stands outside of one")
            }
            return .current
        }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard parts.allSatisfy({ !$0.isEmpty && $0.unicodeScalars.allSatisfy(isNameCharacter) }) else {
            throw TemplateMistake(
                message:
                    "{{\(text.quotable(60))}} is no name; a name is made of letters, digits, _ and -, with a point between a value and its member"
            )
        }
        guard parts.count > 1, let root = TemplateRoot(rawValue: parts[0]) else { return .bare(parts) }
        let members = Array(parts.dropFirst())
        if root == .session, !placeholders.contains(.session) {
            throw TemplateMistake(message: "\(text): this channel's name has no {session}, so its events belong to no session")
        }
        guard let known = root.members else { return .context(root, members) }
        let isDeepEnough = root == .session && members[0] == "attributes" ? members.count > 1 : members.count == 1
        guard known.contains(members[0]), isDeepEnough else {
            let names = known.map { "\(root.rawValue).\($0)\($0 == "attributes" ? ".NAME" : "")" }
            throw TemplateMistake(
                message: "unknown name \(YAMLNode.quoted(text)) in a template\(NearestName.hint(for: text, among: names)) "
                    + "known names: \(names.joined(separator: ", ")); a member of the published data is data.\(text)")
        }
        return .context(root, members)
    }

    private static func isNameCharacter(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", "_", "-": true
        default: false
        }
    }
}
