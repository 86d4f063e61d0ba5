internal import ArgumentParser
internal import LoadTesting

/// Loads a server from outside and says what it did.
@main
struct TandemLoadTest: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tandem-loadtest", abstract: "Load a Pusher-compatible server and measure what arrives.")
}
