import ArgumentParser
import Foundation
import HubConfiguration
import HubHTTPClient
import HubServer

/// `tandem health`: a probe for containers and scripts.
struct Health: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Ask whether the hub lives, or takes new clients; for probes.",
        discussion: """
            Prints nothing and exits with 0 if the answer is good. Otherwise it prints one line and exits with 1. A hub of this machine \
            needs no certificate for its loopback address, because nothing secret is sent.

            Examples:
              tandem health                  # does the hub of this machine answer?
              tandem health --ready          # does it take new clients?
              tandem health --ready --config /etc/tandem/tandem.yaml
              tandem health --url https://hub.example.com
            """)

    @Flag(name: .long, help: "Ask /ready instead of /health: 1 as well while the hub stops, or its store takes no writes.")
    var ready = false
    @OptionGroup var hub: HubAddress
    @Option(
        name: .long, help: ArgumentHelp("Take the address from this configuration file, when there is no --url.", valueName: "file"))
    var config: String?
    @Option(name: .long, help: ArgumentHelp("Seconds to wait for the answer, 1 to 60.", valueName: "seconds")) var timeout = 2

    func validate() throws {
        guard (1...60).contains(timeout) else { throw ValidationError("--timeout is 1 to 60 seconds; it was \(timeout)") }
    }

    func run() async throws {
        do throws(ServerError) {
            let url = "\(try address())/\(ready ? "ready" : "health")"
            try await HealthProbe(url: url, timeout: timeout).ask()
        } catch {
            throw Tandem.fail(error)
        }
    }

    private func address() throws(ServerError) -> String {
        guard hub.url == nil, let config else { return try hub.resolved() }
        return try ConfigurationOptions.load(config).ownAddress
    }
}

/// One question to `/health` or `/ready`.
struct HealthProbe {
    var url: String
    /// Seconds to wait for the answer.
    var timeout: Int

    /// - Throws: `failed` if there is no answer in time, or one other than 200.
    func ask() async throws(ServerError) {
        let answer: HTTPAnswer
        do {
            var options = CurlOptions(name: "health")
            options.clearText = .anywhere
            options.checksCertificates = !NetworkAddress.isLoopback(URLComponents(string: url)?.host ?? "")
            options.totalTimeout = .seconds(timeout)
            options.connectTimeout = .seconds(timeout)
            let client = try CurlMulti(options)
            defer { client.shutdown() }
            answer = try await withCheckedThrowingContinuation { continuation in
                client.submit(HTTPCall(method: "GET", url: url)) { continuation.resume(with: $0) }
            }
        } catch {
            throw ServerError(.failed, "\(url) does not answer: \(error); is the hub running there?")
        }
        guard answer.status == 200 else {
            throw ServerError(.failed, "\(url) answered \(answer.status): \(String(decoding: answer.body.prefix(300), as: UTF8.self))")
        }
    }
}

extension Configuration {
    /// The hub's address for a program on this machine: a wildcard is its loopback address.
    var ownAddress: String {
        let wildcards = ["0.0.0.0": "127.0.0.1", "::": "::1", "[::]": "::1"]
        let host = wildcards[listen.host.value] ?? listen.host.value
        return "\(listen.tls == nil ? "http" : "https")://\(host.contains(":") ? "[\(host)]" : host):\(listen.port.value)"
    }
}
