internal import HubCore
internal import HubYAML

/// A mistake in one member of a notification's content: its place, the expectation and the fix.
package struct ContentMistake: Error, Equatable, CustomStringConvertible {
    /// Kinds of mistakes.
    package enum Problem: Sendable, Equatable {
        /// A member that no gateway knows, with the known ones.
        case unknown(String, known: [String])
        /// A value of the wrong form: what was expected, as in `a whole number from 0`.
        case expected(String)
        /// A sentence without the path, with the fix.
        case sentence(String)
    }

    /// Member names from the outside in, as they were written; an element of a list is `[2]`.
    package let path: [String]
    /// Kind of the mistake, with its details.
    package let problem: Problem
    /// Description of the found value, for `found …`; never a text, which could be personal.
    private let found: String

    init(_ path: [String], _ problem: Problem, found: JSONValue? = nil) {
        self.path = path
        self.problem = problem
        self.found = found.map(Self.kindName) ?? "nothing"
    }

    /// `apns.payload.aps.badge`.
    package var place: String {
        path.reduce(into: "") { place, step in place += place.isEmpty || step.hasPrefix("[") ? step : "." + step }
    }

    /// `apns.payload.aps.badge: expected a whole number from 0, found a text`.
    package var description: String {
        let place = place
        switch problem {
        case .unknown(let key, let known):
            let hint = NearestName.hint(for: key, among: known)
            let start = place.isEmpty ? "" : "\(place): "
            return "\(start)unknown member \"\(key.quotable(60))\"\(hint) known members: \(known.joined(separator: ", "))"
        case .expected(let expected): return "\(place): expected \(expected), found \(found)"
        case .sentence(let sentence): return place.isEmpty ? sentence : "\(place): \(sentence)"
        }
    }

    private static func kindName(_ value: JSONValue) -> String {
        switch value {
        case .null: "null"
        case .bool(let value): value ? "true" : "false"
        case .int(let number): "the number \(number)"
        case .double(let number): "the number \(number)"
        case .string(let text): text.isEmpty ? "an empty text" : "a text"
        case .array: "a list"
        case .object: "an object"
        }
    }
}
