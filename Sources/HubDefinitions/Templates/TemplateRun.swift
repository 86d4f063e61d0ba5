internal import HubCore
internal import Mustache

/// One rendering: resolves its tags, and collects missing values.
final class TemplateRun {
    let tags: [TemplateTag]
    let context: TemplateContext
    private(set) var problems: [String] = []

    init(tags: [TemplateTag], context: TemplateContext) {
        self.tags = tags
        self.context = context
    }

    /// Tag of a rewritten name such as `t12`.
    func tag(_ name: String) -> TemplateTag? {
        guard let number = Int(name.dropFirst()), tags.indices.contains(number) else { return nil }
        return tags[number]
    }

    /// Value that mustache gets for a tag: text for a variable; true, false or a sequence for a section. Never nil, or mustache would go on
    /// searching the outer values.
    func result(_ value: JSONValue?, _ tag: TemplateTag) -> Any {
        var value = value ?? .null
        for function in tag.functions.reversed() where value != .null {
            guard let next = function.apply(to: value) else {
                note("\(function.rawValue)() cannot be applied to what \"\(tag.text)\" is here")
                return ""
            }
            value = next
        }
        guard tag.use == .variable else {
            switch value {
            case .bool(let isTrue): return isTrue
            case .array(let values): return TemplateList(values: values, run: self)
            default: return TemplateValue(value: value, run: self)
            }
        }
        if value == .null { note("\"\(tag.text)\" \(lack(tag))") }
        return value.templateText
    }

    /// Value of a tag outside of sections, after its functions.
    func value(of tag: TemplateTag) -> JSONValue {
        var value: JSONValue? =
            switch tag.name {
            case .current: nil
            case .context(let root, let path): context.value(root, path)
            case .bare(let path): context.value(bare: path)
            }
        for function in tag.functions.reversed() {
            guard let present = value, present != .null else { break }
            guard let next = function.apply(to: present) else {
                note("\(function.rawValue)() cannot be applied to what \"\(tag.text)\" is here")
                return .null
            }
            value = next
        }
        if value ?? .null == .null { note("\"\(tag.text)\" \(lack(tag))") }
        return value ?? .null
    }

    private func lack(_ tag: TemplateTag) -> String {
        switch tag.name {
        case .context(.session, let path) where path[0] == "attributes": "is missing in the session's attributes"
        case .context(.session, let path) where path[0] == "join_code": "is missing: the session has no join code"
        case .context(.session, _): "is missing: there is no such session"
        case .context(.participant, _): "is missing: the recipient is no participant of the session"
        case .context, .bare, .current: "is missing in the published data"
        }
    }

    private func note(_ problem: String) {
        if !problems.contains(problem) { problems.append(problem) }
    }
}

/// The outermost object, which mustache asks for a name last.
struct TemplateStackRoot: MustacheParent {
    let run: TemplateRun

    func child(named name: String) -> Any? {
        guard let tag = run.tag(name) else { return nil }
        switch tag.name {
        case .current: return run.result(nil, tag)
        case .context(let root, let path): return run.result(run.context.value(root, path), tag)
        case .bare(let path): return run.result(run.context.value(bare: path), tag)
        }
    }
}

/// Value of a section, which mustache asks for names before the root.
struct TemplateValue: MustacheParent, MustacheCustomRenderable {
    let value: JSONValue
    let run: TemplateRun

    var renderText: String { value.templateText }
    var isNull: Bool { value == .null }

    func child(named name: String) -> Any? {
        guard let tag = run.tag(name) else { return nil }
        switch tag.name {
        case .current: return run.result(value, tag)
        case .context: return nil
        case .bare(let path):
            guard value[path[0]] != nil else { return nil }
            return run.result(value.member(path[...]), tag)
        }
    }
}

/// Value of a section that is repeated for each element.
struct TemplateList: MustacheSequence {
    let values: [JSONValue]
    let run: TemplateRun

    func makeIterator() -> AnyIterator<TemplateValue> {
        var elements = values.makeIterator()
        let run = run
        return AnyIterator { elements.next().map { TemplateValue(value: $0, run: run) } }
    }
}
