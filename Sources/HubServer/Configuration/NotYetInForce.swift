/// The settings that are read and checked but do nothing in this version. The one place to edit when a feature arrives:
/// remove its row.
enum NotYetInForce {
    /// A key as messages name it, and whether a configuration asks for what it does.
    static let rows: [(key: String, isAskedFor: @Sendable (Configuration, Set<String>) -> Bool)] = [
        ("store", { configuration, _ in if case .postgres = configuration.store.value { true } else { false } }),
        ("backplane", { configuration, _ in configuration.backplane.value != .local }),
    ]

    /// - Parameter written: the keys that stand in the file, with their places.
    static func keys(_ configuration: Configuration, written: [String: SettingSource]) -> [String] {
        rows.filter { $0.isAskedFor(configuration, Set(written.keys)) }.map { row in
            written[row.key].map { "\(row.key) (\($0))" } ?? row.key
        }
    }
}
