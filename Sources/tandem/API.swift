import ArgumentParser
import HubServer

/// `tandem api`: any request to the HTTP API, signed.
struct API: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "api", abstract: "Send a signed request to the HTTP API.",
        discussion: "tandem api PUT /sessions/monday '{\"definition\":\"quiz\",\"join_code\":\"ABC123\"}'")

    @OptionGroup var app: AppOptions
    @OptionGroup var hub: HubAddress
    @Option(name: .long, help: ArgumentHelp("A query parameter; may be repeated.", valueName: "name=value")) var query: [String] = []
    @Option(name: .long, help: ArgumentHelp("A header; may be repeated.", valueName: "name: value")) var header: [String] = []
    @Argument(help: "GET, POST, PUT, PATCH or DELETE.") var method: String
    @Argument(help: "Path below /apps/{app}, such as /channels.") var path: String
    @Argument(help: "Body, nearly always a JSON object; - reads it from standard input.") var body: String?

    func run() async throws {
        let parameters = query.map { text in
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (name: String(parts[0]), value: parts.count > 1 ? String(parts[1]) : "")
        }
        let headers = try header.map { text in
            guard let colon = text.firstIndex(of: ":"), colon > text.startIndex else {
                throw ValidationError("--header needs a name and a value, such as 'Idempotency-Key: order-17'; it was '\(text)'")
            }
            return (name: String(text[..<colon]), value: String(text[text.index(after: colon)...].drop { $0 == " " }))
        }
        do {
            let url = try hub.resolved()
            let body = try CommandInput.text(body ?? "", name: "body")
            let request = SignedRequest(
                method: method.uppercased(), path: "/apps/\(app.resolvedID)\(path.hasPrefix("/") ? path : "/" + path)", query: parameters,
                headers: headers, body: Array(body.utf8))
            print(try await request.send(to: url, as: app.signer))
        } catch {
            throw Tandem.fail(error)
        }
    }
}
