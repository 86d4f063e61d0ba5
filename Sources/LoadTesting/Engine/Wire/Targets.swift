/// The addresses under load: one server, or the nodes of one hub. Connections without an address of their own go to them in turns.
package struct Targets: Sendable {
    /// At least one, all of one scheme and path, no two alike.
    package let all: [Target]

    /// - Throws: if an address is invalid, or does not go together with the first.
    package init(_ urls: [String]) throws(LoadError) {
        var all: [Target] = []
        for url in urls {
            let target = try Target(url)
            if let twin = all.first(where: { $0.isSameServer(as: target) }) {
                throw LoadError(
                    "--url \"\(url)\" is the server that --url \"\(twin.url)\" names already: name each node once", isUsage: true)
            }
            if let first = all.first {
                guard target.isSecure == first.isSecure else {
                    throw LoadError(
                        "--url \"\(url)\" and --url \"\(first.url)\" differ in TLS: give all nodes ws:// or all of them wss://",
                        isUsage: true)
                }
                guard target.prefix == first.prefix else {
                    throw LoadError(
                        "--url \"\(url)\" has another path than --url \"\(first.url)\": nodes of one hub have one path", isUsage: true)
                }
            }
            all.append(target)
        }
        guard !all.isEmpty else { throw LoadError("--url is missing: name at least one server", isUsage: true) }
        self.all = all
    }

    package var first: Target { all[0] }
    package var count: Int { all.count }
    var isSeveral: Bool { all.count > 1 }
    /// For titles: the addresses, separated by commas.
    var url: String { all.map(\.url).joined(separator: ", ") }

    /// The one address, for what only a single server can be asked.
    /// - Throws: if there are several.
    func only(_ scenario: String) throws(LoadError) -> Target {
        guard !isSeveral else { throw LoadError("\(scenario) loads one server: give a single --url", isUsage: true) }
        return first
    }
}
