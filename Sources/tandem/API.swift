import ArgumentParser
import HubServer

/// `tandem api`: any request to the HTTP API, signed.
struct API: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "api", abstract: "Send a signed request to the HTTP API.",
        discussion: "tandem api PUT /sessions/monday '{\"definition\":\"quiz\",\"join_code\":\"ABC123\"}'")

    @OptionGroup var app: AppOptions
    @Option(name: .long, help: "Where the hub is.") var url = "http://127.0.0.1:6001"
    @Option(name: .long, help: ArgumentHelp("A query parameter; may be repeated.", valueName: "name=value")) var query: [String] = []
    @Argument(help: "GET, POST, PUT, PATCH or DELETE.") var method: String
    @Argument(help: "Path below /apps/{app}, such as /channels.") var path: String
    @Argument(help: "Body: a JSON object.") var body: String?

    func run() async throws {
        let parameters = query.map { text in
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (name: String(parts[0]), value: parts.count > 1 ? String(parts[1]) : "")
        }
        do {
            let request = SignedRequest(
                method: method.uppercased(), path: "/apps/\(app.resolvedID)\(path.hasPrefix("/") ? path : "/" + path)", query: parameters,
                body: Array((body ?? "").utf8))
            print(try await request.send(to: url, as: app))
        } catch {
            throw Tandem.fail(error)
        }
    }
}
