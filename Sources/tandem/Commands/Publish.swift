import ArgumentParser
import HubCore
import HubServer
import PusherProtocol

/// `tandem publish`: publishes one signed event, as a backend's library would.
struct Publish: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Publish an event over the HTTP API.",
        discussion: """
            tandem publish my-channel greeting '{"text":"hello"}'
            some-command | tandem publish orders shipped - --also audit --idempotency-key order-17
            """)

    @OptionGroup var app: AppOptions
    @OptionGroup var hub: HubAddress
    @Option(name: .long, help: ArgumentHelp("A further channel; may be repeated.", valueName: "channel")) var also: [String] = []
    @Option(name: .long, help: "Socket id of the connection that shall not get the event.") var socketID: String?
    @Option(
        name: .long, help: ArgumentHelp("What to tell of the channels: user_count, subscription_count, cache.", valueName: "attributes"))
    var info: String?
    @Option(name: .long, help: ArgumentHelp("Makes it harmless to run the command again.", valueName: "key")) var idempotencyKey: String?
    @Argument(help: "Channel to publish to.") var channel: String
    @Argument(help: "Name of the event.") var event: String
    @Argument(help: "Data of the event: any text, usually JSON; - reads it from standard input.") var data = "{}"

    func run() async throws {
        do {
            let url = try hub.resolved()
            print(try await request().send(to: url, as: app.signer))
        } catch {
            throw Tandem.fail(error)
        }
    }

    /// - Throws: for events that every hub refuses.
    private func request() throws(ServerError) -> SignedRequest {
        for name in [channel] + also where ChannelName(allowingServerToUser: name) == nil {
            throw ServerError(.usage, "'\(name)' is not allowed: \(ChannelName.rule)")
        }
        guard !event.isEmpty, event.unicodeScalars.count <= EventName.charactersMax, !EventName.isReserved(event) else {
            throw ServerError(
                .usage,
                "'\(event.prefix(64))' is not allowed: an event name has 1 to \(EventName.charactersMax) characters and no pusher: in front"
            )
        }
        var body: [String: JSONValue] = ["name": .string(event), "channels": .array(([channel] + also).map(JSONValue.string))]
        if let socketID {
            guard SocketID.isWellFormed(socketID) else {
                throw ServerError(.usage, "'\(socketID)' is no socket id: it looks like 1234.5678")
            }
            body["socket_id"] = .string(socketID)
        }
        if let info {
            do { _ = try ChannelAttributes(parsing: info) } catch { throw ServerError(.usage, error.message) }
            body["info"] = .string(info)
        }
        // Read last, because standard input may wait for another program.
        body["data"] = .string(try CommandInput.text(data, name: "data"))
        return SignedRequest(
            method: "POST", path: "/apps/\(app.resolvedID)/events",
            headers: idempotencyKey.map { [("Idempotency-Key", $0)] } ?? [], body: JSONValue.object(body).serialized())
    }
}
