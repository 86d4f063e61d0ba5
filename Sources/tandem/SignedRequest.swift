import ArgumentParser
import Foundation
import HubConfiguration
import HubCore
import HubHTTPClient
import HubJSON
import HubServer
import PusherProtocol

/// The app that a command acts for.
struct AppOptions: ParsableArguments {
    @Option(name: .long, help: "App id; else TANDEM_APP_ID, else 1.") var appID: String?
    @Option(name: .long, help: "App key; else TANDEM_APP_KEY, else app-key.") var key: String?
    @Option(name: .long, help: "App secret; else TANDEM_APP_SECRET, else app-secret.") var secret: String?
    @Option(
        name: .long,
        help: ArgumentHelp("Take id, key and secret from this configuration: of --app-id, or of the first app.", valueName: "file"))
    var config: String?

    mutating func validate() throws {
        guard let config else { return }
        do throws(ServerError) {
            let apps = try ConfigurationOptions.load(config).apps
            guard let app = apps.first(where: { appID == nil || $0.id == appID }), let credential = app.credentials.first else {
                throw ServerError(.badConfiguration, "\(config): it has no app \(appID ?? "")")
            }
            (appID, key, secret) = (app.id, key ?? credential.key, secret ?? credential.secret)
        } catch {
            throw Tandem.fail(error)
        }
    }

    private func value(_ flag: String?, _ name: String, _ fallback: String) -> String {
        flag ?? ProcessInfo.processInfo.environment[name] ?? fallback
    }

    var resolvedID: String { value(appID, "TANDEM_APP_ID", "1") }
    var resolvedKey: String { value(key, "TANDEM_APP_KEY", "app-key") }
    var resolvedSecret: String { value(secret, "TANDEM_APP_SECRET", "app-secret") }
    var signer: RequestSigner { RequestSigner(key: resolvedKey, secret: resolvedSecret) }
}

/// Key and secret that sign a request.
struct RequestSigner {
    var key: String
    var secret: String
}

/// One request to the HTTP API, signed like a backend library's.
struct SignedRequest {
    var method: String
    /// Without the query, in the form to be signed.
    var path: String
    var query: [(name: String, value: String)] = []
    /// Unsigned headers besides the content type.
    var headers: [(name: String, value: String)] = []
    var body: [UInt8] = []

    /// Enough for a list of hundreds of thousands of channels.
    private static let answerBytesMax = 64 << 20

    /// Sends the request and returns the answer's body.
    /// - Throws: if there is no answer, or its status is not a success; the message then holds the body.
    func send(to url: String, as signer: RequestSigner) async throws(ServerError) -> String {
        let signed = RequestAuth.signedQuery(
            method: method, path: path, query: query, body: body, key: signer.key, secret: signer.secret,
            nowSeconds: SystemTime().wallSeconds)
        let text = signed.map { "\(Self.escaped($0.name))=\(Self.escaped($0.value))" }.joined(separator: "&")
        let answer: HTTPAnswer
        do {
            var options = CurlOptions(name: "request")
            options.answerBodyBytesMax = Self.answerBytesMax
            // The operator chose the address, and the secret is not sent.
            options.clearText = .anywhere
            let client = try CurlMulti(options)
            defer { client.shutdown() }
            let call = HTTPCall(
                method: method, url: "\(url)\(Self.escapedPath(path))?\(text)", headers: [("Content-Type", "application/json")] + headers,
                body: body)
            answer = try await withCheckedThrowingContinuation { continuation in
                client.submit(call) { continuation.resume(with: $0) }
            }
        } catch {
            throw ServerError(.failed, "\(url) does not answer: \(error); is the hub running there?")
        }
        guard !answer.bodyTruncated else {
            throw ServerError(
                .failed, "\(url)\(path) answered more than \(Self.answerBytesMax) bytes: ask for less, for instance by filter_by_prefix")
        }
        let content = String(decoding: answer.body, as: UTF8.self)
        guard (200..<300).contains(answer.status) else { throw ServerError(.failed, "\(url)\(path) answered \(answer.status): \(content)") }
        return content
    }

    /// Like `send`, for an answer that is a JSON object.
    func object(from url: String, as signer: RequestSigner) async throws(ServerError) -> JSONValue {
        let text = try await send(to: url, as: signer)
        guard let value = try? JSONValue(parsing: text), value.objectValue != nil else {
            throw ServerError(.failed, "\(url)\(path) answered no JSON object: is it a hub?")
        }
        return value
    }

    /// The path in the form in which the hub reads and verifies it.
    private static func escapedPath(_ path: String) -> String {
        path.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed.union(CharacterSet(charactersIn: "%"))) ?? path
    }

    private static func escaped(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: .alphanumerics.union(CharacterSet(charactersIn: "-._~"))) ?? text
    }
}
