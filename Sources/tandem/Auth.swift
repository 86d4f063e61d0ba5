import ArgumentParser
import HubCore
import HubServer
import PusherProtocol

/// `tandem auth`: what an app's backend answers to a client that wants to subscribe.
struct Auth: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Sign a channel subscription.")

    @OptionGroup var app: AppOptions
    @Argument(help: "Socket id of the connection.") var socketID: String
    @Argument(help: "Channel to subscribe to.") var channel: String
    @Argument(help: ArgumentHelp("For presence channels: {\"user_id\":\"…\",\"user_info\":{…}}.", valueName: "channel-data"))
    var channelData: String?

    func run() throws {
        guard let socket = SocketID(socketID) else {
            throw Tandem.fail(ServerError(.usage, "'\(socketID)' is no socket id: it looks like 1234.5678"))
        }
        guard let name = ChannelName(channel) else { throw Tandem.fail(ServerError(.usage, ChannelName.rule)) }
        if name.kind.isPresence, channelData == nil {
            throw Tandem.fail(ServerError(.usage, "a presence channel needs channel-data: {\"user_id\":\"…\"}"))
        }
        let auth = SubscriptionAuth.sign(
            socketID: socket, channel: channel, channelData: channelData, key: app.resolvedKey, secret: app.resolvedSecret)
        var answer: [String: JSONValue] = ["auth": .string(auth)]
        if let channelData { answer["channel_data"] = .string(channelData) }
        print(JSONValue.object(answer).text)
    }
}
