package import HubDelivery

/// The stored form of a delivery's attempts: a line each, `number#token start end answer`, added at the end. Lines of earlier versions lack
/// the token's mark.
///
/// The log is a column of the delivery, not a table: nearly every push has one attempt, which is written with its outcome.
package enum AttemptLog {
    /// A log that has this many bytes gets no further line.
    package static let bytesMax = 4_096
    /// Characters of an answer that are kept.
    package static let answerCharactersMax = 200

    /// The line that the log gets for one attempt, line feed included.
    package static func line(_ attempt: DeliveryAttempt) -> String {
        let mark = attempt.token.map { "#" + String($0.value, radix: 36) } ?? ""
        let line = "\(attempt.number)\(mark) \(attempt.startedAt) \(attempt.endedAt) \(bounded(attempt.answer))\n"
        assert(line.utf8.count { $0 == 0x0A } == 1, "attempt \(attempt.number) takes several lines")
        return line
    }

    private static func bounded(_ answer: String) -> String {
        // Fast path for short ASCII answers, which nearly all are: walking characters would take longer than writing the row.
        if answer.utf8.count <= answerCharactersMax, answer.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return answer }
        return String(answer.prefix(answerCharactersMax).map { $0.isNewline || $0 == "\u{0}" ? " " : $0 })
    }

    /// - Returns: the attempts by number, and whether every line could be read. If a number occurs twice, the later line counts.
    package static func decode(_ text: String) -> (attempts: [DeliveryAttempt], isComplete: Bool) {
        var attempts: [Int: DeliveryAttempt] = [:]
        var isComplete = true
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false)
            let name = parts[0].split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 4, let number = Int(name[0]), let start = Int64(parts[1]), let end = Int64(parts[2]) else {
                isComplete = false
                continue
            }
            attempts[number] = DeliveryAttempt(
                number: number, startedAt: start, endedAt: end, answer: String(parts[3]),
                token: name.count == 2 ? UInt32(name[1], radix: 36).map(TokenMark.init(value:)) : nil)
        }
        return (attempts.values.sorted { $0.number < $1.number }, isComplete)
    }

    /// Start of the first attempt, in milliseconds since 1970; nil if its line cannot be read. A full log takes no further lines, so the
    /// first line is never lost.
    package static func firstStart(_ text: String) -> Int64? {
        text.split(separator: "\n", maxSplits: 1).first.flatMap { decode(String($0)).attempts.first?.startedAt }
    }
}
