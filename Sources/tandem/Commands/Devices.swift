import ArgumentParser
import HubCore
import HubJSON
import HubServer

/// `tandem devices`: lists the devices of a user. Never shows a token.
struct Devices: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "List a user's devices.", discussion: "tandem devices u17")

    @OptionGroup var app: AppOptions
    @OptionGroup var hub: HubAddress
    @Flag(name: .long, help: "Print JSON.") var json = false
    @Argument(help: "Id of the user.") var user: String

    private static let columns = [
        ("DEVICE", "device"), ("PLATFORM", "platform"), ("PROVIDER", "provider"), ("FORM", "form"), ("TOKEN", "has_token"),
        ("NOTIFICATIONS", "notifications"), ("REFRESHED", "refreshed_at"), ("ACCEPTED", "last_accepted_at"), ("VERSION", "app_version"),
    ]

    func run() async throws {
        do {
            let path = "/apps/\(app.resolvedID)/users/\(user)/devices"
            let answer = try await SignedRequest(method: "GET", path: path).object(from: try hub.resolved(), as: app.signer)
            if json { return print(answer.text) }
            let devices = answer["devices"]?.arrayValue ?? []
            print(devices.isEmpty ? "no devices" : TextTable(Self.columns, devices).text)
        } catch {
            throw Tandem.fail(error)
        }
    }
}
