internal import HubCore
internal import HubJSON

/// The members of a request's body, read with their types and bounds.
///
/// A null member counts as absent. Unknown members are ignored, so that clients may send more than this version knows.
/// Errors name the member and never repeat its value.
struct JSONBody {
    private let members: [String: JSONValue]

    /// - Parameter acceptsForm: whether a form body is accepted as well. The body's first character decides, because clients are careless
    ///   with the content type; no form here begins with a brace.
    init(_ bytes: [UInt8], acceptsForm: Bool = false) throws(APIError) {
        let first = bytes.first { !Self.isSpace($0) }
        if acceptsForm, let first, first != UInt8(ascii: "{") {
            guard let form = FormText.decode(bytes) else {
                throw APIError(
                    400,
                    "the form in the body is not valid: send at most \(FormText.membersMax) members in UTF-8, and %XX for what a form has to escape"
                )
            }
            members = form.mapValues { .string($0) }
            return
        }
        guard first != nil else {
            throw APIError(400, "the body is empty: send a \(acceptsForm ? "form or a JSON object" : "JSON object")")
        }
        let value: JSONValue
        do throws(JSONError) {
            value = try JSONValue(parsing: bytes)
        } catch {
            throw APIError(400, "the body is not valid JSON: \(error.message)")
        }
        guard let object = value.objectValue else {
            throw APIError(400, "the body is not a JSON object: send one, with the members inside braces")
        }
        members = object
    }

    /// Reads an object inside the body.
    /// - Parameter name: of the object in messages.
    init(_ value: JSONValue, named name: String) throws(APIError) {
        guard let object = value.objectValue else { throw APIError(400, "\(name) is not a JSON object") }
        members = object
    }

    /// Unknown members, for requests with a closed set of members: a misspelling must not be ignored silently.
    func unknown(beside known: Set<String>) -> [String] { members.keys.filter { !known.contains($0) }.sorted() }

    func members(among names: Set<String>) -> [String: JSONValue] { members.filter { names.contains($0.key) } }
    func members(without names: Set<String>) -> [String: JSONValue] { members.filter { !names.contains($0.key) } }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
    }

    /// The member's value; nil if null.
    subscript(name: String) -> JSONValue? { present(name) }

    /// Whether the member exists, null included.
    func has(_ name: String) -> Bool { members[name] != nil }

    /// - Parameter charactersMax: in Unicode scalars.
    func string(_ name: String, charactersMax: Int) throws(APIError) -> String? {
        guard let value = present(name) else { return nil }
        guard let text = value.stringValue else { throw APIError(400, "\(name) must be a string") }
        guard text.unicodeScalars.count <= charactersMax else {
            throw APIError(400, "\(name) is too long: at most \(charactersMax) characters")
        }
        return text
    }

    /// `string` for a required member, which may be empty.
    func requiredString(_ name: String, charactersMax: Int) throws(APIError) -> String {
        guard let text = try string(name, charactersMax: charactersMax) else {
            throw APIError(400, "\(name) is missing: send it as a string")
        }
        return text
    }

    func bool(_ name: String) throws(APIError) -> Bool? {
        guard let value = present(name) else { return nil }
        guard let flag = value.boolValue else { throw APIError(400, "\(name) must be true or false") }
        return flag
    }

    func array(_ name: String) throws(APIError) -> [JSONValue]? {
        guard let value = present(name) else { return nil }
        guard let array = value.arrayValue else { throw APIError(400, "\(name) must be an array") }
        return array
    }

    func object(_ name: String) throws(APIError) -> [String: JSONValue]? {
        guard let value = present(name) else { return nil }
        guard let object = value.objectValue else { throw APIError(400, "\(name) must be a JSON object") }
        return object
    }

    /// One of a closed set of words, which the error lists.
    func choice<Word: RawRepresentable<String>>(_ name: String, of words: [Word]) throws(APIError) -> Word? {
        guard let value = present(name) else { return nil }
        guard let word = value.stringValue.flatMap(Word.init(rawValue:)), words.contains(where: { $0.rawValue == word.rawValue }) else {
            throw APIError(400, "\(name) must be \(words.map { "\"\($0.rawValue)\"" }.joined(separator: " or "))")
        }
        return word
    }

    private func present(_ name: String) -> JSONValue? {
        guard let value = members[name], value != .null else { return nil }
        return value
    }
}
