/// One result of an examination: a fact, and the remedy if it is no good one.
package struct Finding: Sendable, Equatable {
    /// Weight of a finding.
    package enum Level: String, Sendable {
        /// Nothing to do.
        case good
        /// The hub runs, and something should be changed.
        case warning
        /// The hub does not do its work.
        case problem
    }

    /// Weight.
    package let level: Level
    /// The fact.
    package let fact: String
    /// The remedy; nil for a good one.
    package let remedy: String?

    /// `warning: FACT; REMEDY`
    package var text: String { "\(level.rawValue): \(fact)\(remedy.map { "; \($0)" } ?? "")" }

    static func good(_ fact: String) -> Finding { Finding(level: .good, fact: fact, remedy: nil) }
    static func warning(_ fact: String, _ remedy: String) -> Finding { Finding(level: .warning, fact: fact, remedy: remedy) }
    static func problem(_ fact: String, _ remedy: String) -> Finding { Finding(level: .problem, fact: fact, remedy: remedy) }
}
