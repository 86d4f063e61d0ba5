internal import Foundation
internal import HubCore
internal import HubHTTPClient
internal import HubJSON
internal import PusherProtocol

/// The quiz master's backend: requests to the hub, signed as a backend library signs them. Any thread.
final class Backend: Sendable {
    let key: String
    let secret: String
    private let client: CurlMulti
    private let port = Guarded<UInt16>(0)
    private let time: any TimeSource

    static let app = "1"

    init(key: String, secret: String, time: any TimeSource) throws(DemoError) {
        self.key = key
        self.secret = secret
        self.time = time
        var options = CurlOptions(name: "demo")
        options.totalTimeout = .seconds(3)
        options.connectionsPerHostMax = 4
        options.waitsForMultiplexing = false
        options.narrowsWhenThrottled = false
        options.answerBodyBytesMax = 256 * 1024
        do {
            client = try CurlMulti(options)
        } catch {
            throw DemoError("cannot start the HTTP client: \(error)")
        }
    }

    /// The hub serves at this port of loopback from now on.
    func moved(to port: UInt16) { self.port.withLock { $0 = port } }

    /// Sends one request.
    /// - Parameter path: below `/apps/1`, without characters that need escaping.
    /// - Returns: the answer, a JSON object.
    /// - Throws: if nothing answers, or anything but a success.
    func call(
        _ method: String, _ path: String, _ body: JSONValue? = nil, headers: [(name: String, value: String)] = []
    ) async throws(DemoError) -> JSONValue {
        let path = "/apps/\(Self.app)\(path)"
        let bytes = body?.serialized() ?? []
        let query = RequestAuth.signedQuery(method: method, path: path, body: bytes, key: key, secret: secret, nowSeconds: time.wallSeconds)
        let text = query.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
        let url = "http://127.0.0.1:\(port.withLock { $0 })\(path)?\(text)"
        let call = HTTPCall(method: method, url: url, headers: [("Content-Type", "application/json")] + headers, body: bytes)
        let answer: HTTPAnswer
        do {
            answer = try await withCheckedThrowingContinuation { continuation in
                client.submit(call) { continuation.resume(with: $0) }
            }
        } catch {
            throw DemoError("\(method) \(path): the hub does not answer: \(error)")
        }
        guard (200..<300).contains(answer.status), let json = try? JSONValue(parsing: answer.body) else {
            throw DemoError("\(method) \(path): the hub answered \(answer.status) \(String(decoding: answer.body, as: UTF8.self))")
        }
        return json
    }

    /// Puts the session, its people and their phones on the hub.
    /// - Returns: a participant token for each phone's id.
    func admit(_ cast: Cast) async throws(DemoError) -> [String: String] {
        let session = "/sessions/\(Cast.session)"
        _ = try await call("PUT", session, ["definition": "demo", "join_code": "DEMO42"])
        var tokens: [String: String] = [:]
        for phone in cast.phones {
            let person = "\(session)/participants/\(phone.user)"
            _ = try await call("PUT", person, ["name": .string(phone.name)])
            _ = try await call(
                "PUT", "/users/\(phone.user)/devices/\(phone.id)",
                ["token": .string(phone.token), "platform": .string(phone.isApple ? "ios" : "android")])
            let answer = try await call("POST", "\(person)/token", ["scope": "session", "device": .string(phone.id)])
            guard let token = answer["token"]?.stringValue else { throw DemoError("the hub gave no participant token") }
            tokens[phone.id] = token
        }
        return tokens
    }

    /// Publishes a question once, however often it is called with the same arguments.
    /// - Parameter askedAt: milliseconds since 1970.
    /// - Returns: the event's id.
    func ask(_ number: Int, askedAt: Int64, run: String) async throws(DemoError) -> String {
        let question = Cast.question(number)
        let data: JSONValue = [
            "number": .int(Int64(number)), "text": .string(question.text), "answers": .array(question.answers.map(JSONValue.string)),
            "asked_at": .int(askedAt),
        ]
        let answer = try await call(
            "POST", "/events",
            ["name": .string(Cast.event), "channels": [.string(Cast.channel)], "data": .string(data.text)],
            headers: [("Idempotency-Key", "demo-\(run)-\(number)")])
        guard let event = answer["event_id"]?.stringValue else { throw DemoError("the hub gave the question no event id") }
        return event
    }

    /// The event's trail, as the hub tells it.
    func trail(of event: String) async throws(DemoError) -> JSONValue {
        try await call("GET", "/events/\(event)/deliveries")
    }

    func end() { client.shutdown() }
}
