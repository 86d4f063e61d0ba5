import ArgumentParser
import HubCore
import HubServer

/// `tandem publish`: one signed event, as a backend's library would send it.
struct Publish: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Publish an event over the HTTP API.")

    @OptionGroup var app: AppOptions
    @Option(name: .long, help: "Where the hub is.") var url = "http://127.0.0.1:6001"
    @Argument(help: "Channel to publish to.") var channel: String
    @Argument(help: "Name of the event.") var event: String
    @Argument(help: "Data of the event: any text, usually JSON.") var data = "{}"

    func run() async throws {
        let body = JSONValue.object(["name": .string(event), "channels": [.string(channel)], "data": .string(data)]).serialized()
        do {
            let request = SignedRequest(method: "POST", path: "/apps/\(app.resolvedID)/events", body: body)
            print(try await request.send(to: url, as: app))
        } catch {
            throw Tandem.fail(error)
        }
    }
}
