/// Finds the known name closest to a mistyped one.
package enum NearestName {
    /// The known name with the fewest edits to `name`, if few enough to be a slip; the first of equals.
    package static func of(_ name: String, among known: [String]) -> String? {
        let typed = Array(name.lowercased().utf8.prefix(lengthMax))
        var best: (name: String, edits: Int)?
        for candidate in known {
            let known = Array(candidate.lowercased().utf8.prefix(lengthMax))
            // The beginning of a known name counts as one edit.
            let isBeginning = typed.count >= beginningMin && known.starts(with: typed)
            let edits = isBeginning ? 1 : distance(typed, known)
            if edits < best?.edits ?? Int.max { best = (candidate, edits) }
        }
        guard let best, best.edits <= max(1, typed.count / 2), best.edits < max(typed.count, best.name.utf8.count) else {
            return nil
        }
        return best.name
    }

    /// `; did you mean "y"?` when there is a likely one, else `;`: the list of known names follows.
    package static func hint(for name: String, among known: [String]) -> String {
        of(name, among: known).map { "; did you mean \"\($0)\"?" } ?? ";"
    }

    /// Fewest bytes of a beginning that count as a match.
    private static let beginningMin = 3
    /// Most bytes of a name that are compared; the cost is the product of both lengths.
    private static let lengthMax = 64

    /// The number of insertions, deletions, replacements, and exchanges of neighbours between two names.
    private static func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
        var beforeLast = [Int](repeating: 0, count: b.count + 1)
        var last = Array(0...b.count)
        for i in a.indices {
            var row = [i + 1] + [Int](repeating: 0, count: b.count)
            for j in b.indices {
                row[j + 1] = min(last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { row[j + 1] = min(row[j + 1], beforeLast[j - 1] + 1) }
            }
            beforeLast = last
            last = row
        }
        assert(
            last[b.count] >= abs(a.count - b.count) && last[b.count] <= max(a.count, b.count),
            "\(last[b.count]) edits between \(a.count) and \(b.count) bytes")
        return last[b.count]
    }
}
