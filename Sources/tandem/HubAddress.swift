import ArgumentParser
import Foundation
import HubServer

/// The hub's address, shared by all commands that call one.
struct HubAddress: ParsableArguments {
    @Option(name: .long, help: "Where the hub is; else TANDEM_URL, else http://127.0.0.1:6001.") var url: String?

    private static let variable = "TANDEM_URL"
    private static let fallback = "http://127.0.0.1:6001"

    /// The address without a trailing slash.
    func resolved() throws(ServerError) -> String {
        if let url { return try Self.checked(url, from: "--url", else: .usage) }
        guard let url = ProcessInfo.processInfo.environment[Self.variable] else { return Self.fallback }
        return try Self.checked(url, from: Self.variable, else: .badConfiguration)
    }

    private static func checked(_ text: String, from source: String, else code: ServerError.ExitCode) throws(ServerError) -> String {
        guard let parts = URLComponents(string: text), parts.scheme == "http" || parts.scheme == "https", parts.host?.isEmpty == false,
            parts.query == nil, parts.fragment == nil
        else {
            throw ServerError(code, "\(source): '\(text)' is no address of a hub: it looks like \(fallback) or https://hub.example.com")
        }
        return text.hasSuffix("/") ? String(text.dropLast()) : text
    }
}
