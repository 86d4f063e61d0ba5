import LoadTesting

/// The kinds of servers by their names on the command line.
enum DialectName {
    static let all = ["pusher", "floor", "nats", "nchan", "socketify"]
    static var list: String { all.joined(separator: ", ") }

    /// - Throws: for an unknown name.
    static func dialect(_ name: String, app: PusherDialect.App, target: Target) throws(LoadError) -> any Dialect {
        switch name {
        case "pusher": PusherDialect(app: app, target: target)
        case "floor": FloorDialect(authority: target.authority)
        case "nats": NATSDialect()
        case "nchan": NchanDialect(authority: target.authority)
        case "socketify": SocketifyDialect(authority: target.authority)
        default: throw LoadError("--dialect is one of \(list), not \"\(name)\"", isUsage: true)
        }
    }
}
