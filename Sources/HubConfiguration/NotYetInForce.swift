/// Settings that are read and checked but do nothing in this version. A new feature only removes its row here.
enum NotYetInForce {
    /// Key as messages name it, and whether a configuration uses the setting.
    static let rows: [(key: String, isAskedFor: @Sendable (Configuration, Set<String>) -> Bool)] = []

    /// - Parameter written: keys in the file, with their places.
    static func keys(_ configuration: Configuration, written: [String: SettingSource]) -> [String] {
        rows.filter { $0.isAskedFor(configuration, Set(written.keys)) }.map { row in
            written[row.key].map { "\(row.key) (\($0))" } ?? row.key
        }
    }
}
