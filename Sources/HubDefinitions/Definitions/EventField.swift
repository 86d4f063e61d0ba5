package import HubCore

/// A required or optional member of an event's published data, with its type.
package struct EventField: Sendable, Equatable {
    /// Type of a member.
    package enum Form: Sendable, Equatable {
        case string, integer
        /// Digits with or without a point, in a text, so that amounts stay exact. Whole numbers are accepted as well.
        case decimal
        case boolean
        case oneOf([JSONValue])
    }

    /// Name of the member.
    package var name: String
    /// Type of the value.
    package var form: Form
    /// Whether the member has to be there.
    package var isRequired: Bool

    /// Mistake of the field in this data, as a sentence that names the field but no value; nil if correct.
    func problem(in data: JSONValue) -> String? {
        guard let value = data[name], value != .null else {
            return isRequired ? "\"\(name)\" is missing in the published data: write \(expectation)" : nil
        }
        return accepts(value) ? nil : "\"\(name)\" in the published data is not \(expectation)"
    }

    private func accepts(_ value: JSONValue) -> Bool {
        switch form {
        case .string: value.stringValue != nil
        case .integer: value.intValue != nil
        case .boolean: value.boolValue != nil
        case .decimal: value.intValue != nil || value.stringValue.map(Self.isDecimal) == true
        case .oneOf(let values): values.contains(value)
        }
    }

    private var expectation: String {
        switch form {
        case .string: "a text"
        case .integer: "a whole number"
        case .decimal: "a decimal number in quotes, such as \"12.50\""
        case .boolean: "true or false"
        case .oneOf(let values): "one of \(values.map { $0.stringValue ?? $0.text }.joined(separator: ", "))"
        }
    }

    static func isDecimal(_ text: String) -> Bool {
        let parts = (text.hasPrefix("-") ? text.dropFirst() : text[...]).split(separator: ".", omittingEmptySubsequences: false)
        return (1...2).contains(parts.count) && parts.allSatisfy { ContentText.isDigits($0) }
    }
}

extension EventDefinition {
    /// Mistakes of the event's fields in the published data, in the definition's order.
    package func fieldProblems(_ data: JSONValue) -> [String] { fields.compactMap { $0.problem(in: data) } }
}
