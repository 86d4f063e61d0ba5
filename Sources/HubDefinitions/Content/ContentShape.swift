internal import HubCore

/// Form of a member of a notification's content, as read and as written to a gateway.
indirect enum ContentShape: Sendable {
    case text
    /// Text that is not empty.
    case name
    case flag
    /// 0 or 1; true and false are read as well.
    case zeroOrOne
    case whole(ClosedRange<Int64>)
    case number(ClosedRange<Double>?)
    /// A closed set of words, read in any case and written as listed.
    case words([String], prefix: String = "")
    /// FCM's Duration: `"3.5s"`, or a number of seconds.
    case duration(secondsMax: Int64)
    /// RFC 3339.
    case time
    /// `#rrggbb`.
    case colour
    /// FCM's Color; `#rrggbb` and `#rrggbbaa` are converted to one.
    case lightColour
    case httpsLink
    case analyticsLabel
    /// FCM's `data`: any JSON under names that FCM does not keep for itself.
    case data
    case list(ContentShape)
    /// Values of one shape under free names.
    case strings
    /// The second shape for an object, the first for all other values.
    case either(ContentShape, ContentShape)
    case object(ContentObject)
    /// Any object.
    case open
}

/// An object with known members.
struct ContentObject: Sendable {
    /// Names in the order in which messages list them.
    let names: [String]
    let members: [String: ContentShape]
    /// Whether names may be in camelCase as well: FCM's own messages take both (proto3 JSON).
    let takesCamelCase: Bool
    /// Fixes for members of former APIs, by name.
    let former: [String: String]

    init(_ members: KeyValuePairs<String, ContentShape>, takesCamelCase: Bool = true, former: [String: String] = [:]) {
        names = members.map(\.key)
        self.members = Dictionary(members.map { ($0.key, $0.value) }, uniquingKeysWith: { first, _ in first })
        self.takesCamelCase = takesCamelCase
        self.former = former
    }

    private init(names: [String], members: [String: ContentShape], takesCamelCase: Bool, former: [String: String]) {
        (self.names, self.members, self.takesCamelCase, self.former) = (names, members, takesCamelCase, former)
    }

    /// Members of both objects; the own ones win.
    func merged(with other: ContentObject) -> ContentObject {
        ContentObject(
            names: names + other.names.filter { members[$0] == nil }, members: members.merging(other.members) { own, _ in own },
            takesCamelCase: takesCamelCase, former: former.merging(other.former) { own, _ in own })
    }

    func without(_ name: String) -> ContentObject {
        ContentObject(
            names: names.filter { $0 != name }, members: members.filter { $0.key != name }, takesCamelCase: takesCamelCase, former: former)
    }

    /// Canonical name of a member: `channel_id` for `channelId`; nil if unknown.
    func canonical(_ key: String) -> String? {
        if members[key] != nil { return key }
        guard takesCamelCase else { return nil }
        let snake = Self.snakeCase(key)
        return members[snake] == nil ? nil : snake
    }

    static func snakeCase(_ key: String) -> String {
        key.reduce(into: "") { name, character in
            if character.isASCII, character.isUppercase { name += "_" + character.lowercased() } else { name.append(character) }
        }
    }
}

/// Reads content by its shapes, converts it to the form that gateways take, and collects mistakes.
struct ContentReader {
    /// Whether a text with a `{{tag}}` passes for any text; it is read again once the tag is filled in.
    let allowsTags: Bool
    /// Whether an empty name counts as absent. A template leaves a name empty if its section lacks a value.
    let emptyIsAbsent: Bool
    private(set) var mistakes: [ContentMistake] = []

    init(allowsTags: Bool = false, emptyIsAbsent: Bool = false) {
        self.allowsTags = allowsTags
        self.emptyIsAbsent = emptyIsAbsent
    }

    mutating func note(_ path: [String], _ problem: ContentMistake.Problem, found: JSONValue? = nil) {
        mistakes.append(ContentMistake(path, problem, found: found))
    }

    /// The members by their canonical names; null means absent.
    mutating func members(_ value: JSONValue, _ object: ContentObject, at path: [String]) -> [String: JSONValue] {
        guard let given = value.objectValue else {
            note(path, .expected("an object"), found: value)
            return [:]
        }
        var members: [String: JSONValue] = [:]
        for key in given.keys.sorted() {
            guard let value = given[key] else { continue }
            guard let name = object.canonical(key), let shape = object.members[name] else {
                if let instead = object.former[key] {
                    note(path + [key], .sentence(instead))
                } else {
                    note(path, .unknown(key, known: object.names))
                }
                continue
            }
            if value == .null { continue }
            if emptyIsAbsent, value == "", case .name = shape { continue }
            if members[name] != nil {
                note(path + [key], .sentence("stands twice, as \(name) and in camelCase; keep one of them"))
                continue
            }
            members[name] = read(value, shape, at: path + [key])
        }
        return members
    }

    /// The value in the form that gateways take; unchanged if it is mistaken.
    mutating func read(_ value: JSONValue, _ shape: ContentShape, at path: [String]) -> JSONValue {
        if allowsTags, let text = value.stringValue, text.contains("{{"), shape.takesText { return value }
        switch shape {
        case .object(let object): return .object(members(value, object, at: path))
        case .open:
            if value.objectValue == nil { note(path, .expected("an object"), found: value) }
            return value
        case .list(let element):
            guard let values = value.arrayValue else {
                note(path, .expected("a list of \(element.plural)"), found: value)
                return value
            }
            return .array(values.enumerated().map { read($1, element, at: path + ["[\($0)]"]) })
        case .strings:
            guard let members = value.objectValue else {
                note(path, .expected("an object of texts"), found: value)
                return value
            }
            for key in members.keys.sorted() where members[key]?.stringValue == nil {
                note(path + [key], .expected("text"), found: members[key])
            }
            return value
        case .data:
            guard let members = value.objectValue else {
                note(path, .expected("an object"), found: value)
                return value
            }
            for key in members.keys.sorted() {
                if let reason = DataKey.reservedReason(key) { note(path, .sentence("cannot have \"\(key.quotable(60))\": \(reason)")) }
            }
            // Publishers write null for an absent value.
            return .object(members.filter { $0.value != .null })
        case .either(let first, let second):
            let isFirst = value.objectValue == nil
            return read(value, isFirst ? first : second, at: path)
        default:
            guard let written = shape.written(value) else {
                note(path, .expected(shape.expectation), found: value)
                return value
            }
            return written
        }
    }
}

extension ContentShape {
    /// Whether the shape is text on the wire, so that a template can make it.
    fileprivate var takesText: Bool {
        switch self {
        case .text, .name, .words, .duration, .time, .colour, .httpsLink, .analyticsLabel, .lightColour: true
        case .either(let first, _): first.takesText
        // A template that is one tag stands for its value, which may be a number.
        case .whole, .number, .open: true
        default: false
        }
    }

    fileprivate var plural: String {
        switch self {
        case .text, .name: "texts"
        case .duration: "durations such as \"0.5s\""
        case .object, .open: "objects"
        default: "values"
        }
    }

    var expectation: String {
        switch self {
        case .text: "text"
        case .name: "text that is not empty"
        case .flag: "true or false"
        case .zeroOrOne: "0 or 1"
        case .whole(let range):
            range.upperBound >= Int64(Int32.max)
                ? "a whole number from \(range.lowerBound)" : "a whole number from \(range.lowerBound) to \(range.upperBound)"
        case .number(let range?): "a number from \(Self.short(range.lowerBound)) to \(Self.short(range.upperBound))"
        case .number(nil): "a number"
        case .words(let words, let prefix): "one of \(words.map { prefix + $0 }.joined(separator: ", "))"
        case .duration(let max): "a duration in seconds such as \"3.5s\", from 0s to \(max)s"
        case .time: "a time such as \"2026-01-09T01:00:00Z\""
        case .colour: "a colour such as \"#4CAF50\""
        case .lightColour: "a colour such as \"#4CAF50\", or {red, green, blue, alpha} from 0 to 1"
        case .httpsLink: "an address that begins with https://"
        case .analyticsLabel: "1 to 50 of the characters a-z, A-Z, 0-9 and -_.~%"
        case .data, .strings, .object, .open: "an object"
        case .list: "a list"
        case .either(let first, let second): "\(first.expectation) or \(second.expectation)"
        }
    }

    private static func short(_ number: Double) -> String { number == number.rounded() ? String(Int(number)) : String(number) }

    /// The value in the form that gateways take; nil if it does not have this shape.
    fileprivate func written(_ value: JSONValue) -> JSONValue? {
        switch (self, value) {
        case (.text, .string), (.flag, .bool), (.number(nil), .int), (.number(nil), .double): return value
        case (.name, .string(let text)): return text.isEmpty ? nil : value
        case (.zeroOrOne, .bool(let flag)): return flag ? 1 : 0
        case (.zeroOrOne, .int(let number)): return number == 0 || number == 1 ? value : nil
        case (.whole(let range), .int(let number)): return range.contains(number) ? value : nil
        case (.number(let range?), .int(let number)): return range.contains(Double(number)) ? value : nil
        case (.number(let range?), .double(let number)): return range.contains(number) ? value : nil
        case (.words(let words, let prefix), .string(let text)):
            let bare = !prefix.isEmpty && text.uppercased().hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : text
            return words.first { $0.lowercased() == bare.lowercased() }.map { .string(prefix + $0) }
        case (.duration(let max), .int(let seconds)): return (0...max).contains(seconds) ? .string("\(seconds)s") : nil
        case (.duration(let max), .string(let text)): return ContentText.duration(text, secondsMax: max).map(JSONValue.string)
        case (.time, .string(let text)): return ContentText.isTime(text) ? value : nil
        case (.colour, .string(let text)): return ContentText.isColour(text) ? value : nil
        case (.lightColour, .string(let text)): return ContentText.lightColour(text)
        case (.lightColour, .object(let members)):
            let parts = ["red", "green", "blue", "alpha"]
            let isColour =
                members.keys.allSatisfy(parts.contains)
                && members.values.allSatisfy { ContentShape.number(0...1).written($0) != nil }
            return isColour ? value : nil
        case (.httpsLink, .string(let text)): return text.lowercased().hasPrefix("https://") && text.utf8.count > 8 ? value : nil
        case (.analyticsLabel, .string(let text)): return ContentText.isLabel(text, charactersMax: 50) ? value : nil
        default: return nil
        }
    }
}

/// Names that `data` cannot have.
enum DataKey {
    /// Members that the hub adds to every notification's data.
    static let own: Set<String> = ["nid", "event_id", "seq", "ts"]

    /// Reason why FCM, APNs or the hub would not deliver such a member of `data`; nil if delivered.
    static func reservedReason(_ key: String) -> String? {
        if key.isEmpty { return "a key needs a name" }
        if ["from", "message_type", "collapse_key"].contains(key) || key.hasPrefix("google") || key.hasPrefix("gcm") {
            return "FCM keeps this name for itself; rename it"
        }
        if key == "aps" { return "APNs keeps this name for itself; use the apns: block" }
        if own.contains(key) { return "the hub adds a member of this name itself; rename it" }
        return nil
    }
}
