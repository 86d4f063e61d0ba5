import LoadTesting

/// The kinds of servers by their names on the command line.
enum DialectName {
    static let all = ["pusher"]
    static var list: String { all.joined(separator: ", ") }

    /// - Throws: for a name that is not known.
    static func dialect(_ name: String, app: PusherDialect.App, target: Target) throws(LoadError) -> any Dialect {
        switch name {
        case "pusher": PusherDialect(app: app, target: target)
        default: throw LoadError("--dialect is one of \(list), not \"\(name)\"", isUsage: true)
        }
    }
}
