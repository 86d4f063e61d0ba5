internal import HubCore
internal import HubYAML

/// What is wrong with one member of a notification's content: where, what was expected, what to write.
package struct ContentMistake: Error, Equatable, CustomStringConvertible {
    package enum Problem: Sendable, Equatable {
        /// A member that no gateway knows, with those that stand there.
        case unknown(String, known: [String])
        /// A value of the wrong form: what was expected, as in `a whole number from 0`.
        case expected(String)
        /// A sentence without the path, with the fix.
        case sentence(String)
    }

    /// Member names from the outside in, as they were written; an element of a list is `[2]`.
    package let path: [String]
    package let problem: Problem
    /// What stood there, for `found …`; never a value that could be personal.
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
