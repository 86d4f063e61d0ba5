import ArgumentParser
import Foundation
import HubCore
import HubCrypto
import HubJSON
import HubServer
import PusherProtocol

/// `tandem auth`: an app backend's answer to a client that subscribes or signs in.
struct Auth: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Sign a subscription or a sign-in, as an app's backend does.",
        discussion: """
            tandem auth 1234.5678 private-orders
            tandem auth 1234.5678 presence-room '{"user_id":"7","user_info":{"name":"Ada"}}'
            tandem auth 1234.5678 --user-data '{"id":"7","watchlist":["8"]}'
            """)

    @OptionGroup var app: AppOptions
    @Option(name: .long, help: ArgumentHelp("Sign a sign-in: {\"id\":\"…\"}; - reads it from standard input.", valueName: "json"))
    var userData: String?
    @Flag(name: .long, help: "The connection is signed in, and so needs no channel-data.") var signedIn = false
    @Option(name: .long, help: ArgumentHelp("For private-encrypted- channels: 32 bytes in base64.", valueName: "key"))
    var encryptionMasterKey: String?
    @Argument(help: "Socket id of the connection.") var socketID: String
    @Argument(help: "Channel to subscribe to.") var channel: String?
    @Argument(
        help: ArgumentHelp(
            "For presence channels: {\"user_id\":\"…\",\"user_info\":{…}}; - reads it from standard input.", valueName: "channel-data"))
    var channelData: String?

    func run() throws {
        do {
            print(JSONValue.object(try answer()).text)
        } catch {
            throw Tandem.fail(error)
        }
    }

    private func answer() throws(ServerError) -> [String: JSONValue] {
        guard let socket = SocketID(socketID) else {
            throw ServerError(.usage, "'\(socketID)' is no socket id: it looks like 1234.5678")
        }
        guard let userData else {
            guard let channel else { throw ServerError(.usage, "what to sign is missing: name a channel, or the user by --user-data") }
            return try subscription(socket, to: channel)
        }
        guard channel == nil else { throw ServerError(.usage, "--user-data is for a sign-in, which has no channel: leave one of them out") }
        let text = try CommandInput.text(userData, name: "--user-data")
        try check { (parser) throws(ProtocolError) in _ = try SignedInUser.parse(userData: text, limits: UserLimits(), with: parser) }
        let auth = SubscriptionAuth.signUser(socketID: socket, userData: text, key: app.resolvedKey, secret: app.resolvedSecret)
        return ["auth": .string(auth), "user_data": .string(text)]
    }

    private func subscription(_ socket: SocketID, to channel: String) throws(ServerError) -> [String: JSONValue] {
        guard let name = ChannelName(channel) else { throw ServerError(.usage, "'\(channel)' is not allowed: \(ChannelName.rule)") }
        guard name.kind.requiresAuthorization else {
            throw ServerError(.usage, "\(channel) is a public channel: subscribing to it needs no signature")
        }
        let data: String? = if let channelData { try CommandInput.text(channelData, name: "channel-data") } else { nil }
        if name.kind.isPresence {
            if let data {
                try check { (parser) throws(ProtocolError) in
                    _ = try PresenceMember.parse(channelData: data, limits: UserLimits(), with: parser)
                }
            } else if !signedIn {
                throw ServerError(.usage, "a presence channel needs channel-data, {\"user_id\":\"…\"}, or --signed-in")
            }
        }
        let auth = SubscriptionAuth.sign(
            socketID: socket, channel: channel, channelData: data, key: app.resolvedKey, secret: app.resolvedSecret)
        var answer: [String: JSONValue] = ["auth": .string(auth)]
        if let data { answer["channel_data"] = .string(data) }
        if let encryptionMasterKey { answer["shared_secret"] = .string(try sharedSecret(of: name, masterKey: encryptionMasterKey)) }
        return answer
    }

    /// The secret that subscribers decrypt with (docs/protocol.md, 2.7); the hub never sees it.
    private func sharedSecret(of channel: ChannelName, masterKey text: String) throws(ServerError) -> String {
        guard channel.kind.isEncrypted else {
            throw ServerError(.usage, "\(channel) is not encrypted: --encryption-master-key is for private-encrypted- channels")
        }
        guard let masterKey = Data(base64Encoded: text), masterKey.count == Self.masterKeyBytes else {
            throw ServerError(
                .usage, "--encryption-master-key is not \(Self.masterKeyBytes) bytes in base64: make one with openssl rand -base64 32")
        }
        return Data(Digest.sha256(Array(channel.text.utf8) + masterKey)).base64EncodedString()
    }

    private static let masterKeyBytes = 32

    /// Refuses data that the hub would refuse after signing.
    private func check(_ parse: (JSONParser) throws(ProtocolError) -> Void) throws(ServerError) {
        // Larger than either object's limit, so that the limit's own message gives the size.
        do { try parse(JSONParser(capacityBytes: 1 << 20)) } catch { throw ServerError(.usage, error.message) }
    }
}
