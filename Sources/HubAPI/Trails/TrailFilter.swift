internal import HubCore
internal import HubDelivery

/// The recipients of an event that a request asks for: by state, and by decision.
struct TrailFilter {
    private let states: Set<RecipientState>
    private let choices: Set<RecipientNote.Choice>

    /// Reads `state` and `decision`, each several words with commas between them.
    init(_ request: HTTPRequest) throws(APIError) {
        let words = Dictionary(uniqueKeysWithValues: RecipientState.allCases.map { ($0.rawValue, $0) })
        states = try Self.words(request.parameter("state"), of: words, name: "state")
        let decisions = Dictionary(uniqueKeysWithValues: RecipientNote.Choice.allCases.map { ($0.word, $0) })
        choices = try Self.words(request.parameter("decision"), of: decisions, name: "decision")
    }

    /// Everybody.
    var isEmpty: Bool { states.isEmpty && choices.isEmpty }

    /// The matching recipients from a place on.
    /// - Parameters:
    ///   - user: the only user who may match; nil: everybody.
    ///   - first: place among all recipients.
    /// - Returns: `next` is the place at which the next page begins; nil: this is the last one. `matched` counts all matches.
    func page(
        of outcomes: EventOutcomes, user: String?, from first: Int, limit: Int
    ) -> (users: [String], next: Int?, matched: Int) {
        var page: (users: [String], next: Int?, matched: Int) = ([], nil, 0)
        for (place, recipient) in outcomes.recipients.enumerated() where matches(recipient, user: user) {
            page.matched += 1
            guard place >= first else { continue }
            if page.users.count < limit {
                page.users.append(recipient.user)
            } else if page.next == nil {
                page.next = place
            }
        }
        return page
    }

    private func matches(_ recipient: EventOutcomes.Recipient, user: String?) -> Bool {
        (states.isEmpty || states.contains(recipient.state))
            && (choices.isEmpty || recipient.choice.map(choices.contains) ?? false)
            && (user == nil || user.map(ExactText.init) == ExactText(recipient.user))
    }

    private static func words<Word: Hashable>(
        _ text: String?, of known: [String: Word], name: String
    ) throws(APIError) -> Set<Word> {
        var words: Set<Word> = []
        for part in text?.split(separator: ",", omittingEmptySubsequences: false) ?? [] {
            guard let word = known[String(part)] else {
                throw APIError(
                    400, "\(name) \(APIError.quoted(String(part))) is unknown: use \(known.keys.sorted().joined(separator: ", "))")
            }
            words.insert(word)
        }
        return words
    }
}
