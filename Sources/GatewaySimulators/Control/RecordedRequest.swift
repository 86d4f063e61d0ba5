package import HubCore
import HubCrypto
import HubJSON

/// The record of one request, written when its answer is decided.
package struct RecordedRequest: Sendable {
    /// Grows by one per request, over all providers, from 1.
    package var sequence = 0
    package var provider: GatewayProvider
    /// The device token, FID, `topic:NAME` or `condition:TEXT`; empty for OAuth and for a request that names none.
    package var token: String
    /// The connection's number on the provider's port.
    package var connection: UInt64
    /// The HTTP/2 stream; 0 over HTTP/1.1.
    package var stream: Int32
    package var method: String
    package var path: String
    /// In the order received, names in lower case. `authorization` is stored as a digest.
    package var headers: [(name: String, value: String)]
    /// As received, up to `SimulatorLimits.bodyBytesKept`. For OAuth: the assertion's claims as JSON.
    package var body: [UInt8]
    /// Length of the body as sent.
    package var bodyBytes: Int
    /// Milliseconds since 1970.
    package var receivedAt: Int64
    /// The answer's HTTP status; 0 if there was none (reset, GOAWAY, close).
    package var status: Int
    /// The answer's reason, or the fault's action; empty on success.
    package var reason: String
    /// APNs' `apns-id` or FCM's message name.
    package var identifier: String
    /// The provider token's header and claims; nil if unreadable.
    package var credential: JSONValue?
    /// APNs only.
    package var environment: SimulatedEnvironment?

    init(
        provider: GatewayProvider, token: String, request: ReceivedRequest, receivedAt: Int64, status: Int, reason: String,
        identifier: String = "", credential: JSONValue? = nil, environment: SimulatedEnvironment? = nil
    ) {
        self.provider = provider
        self.token = token
        connection = request.connection
        stream = request.stream
        method = request.method
        path = String(request.target.prefix { $0 != "?" })
        headers = request.headers.map { field in
            // A digest only, so that a real key used by mistake does not become readable over the control port.
            let digest = { "sha256:" + Hex.encode(Array(Digest.sha256(Array(field.value.utf8)).prefix(8))) }
            return field.name == "authorization" ? (field.name, digest()) : field
        }
        body = request.body
        bodyBytes = request.bodyBytes
        self.receivedAt = receivedAt
        self.status = status
        self.reason = reason
        self.identifier = identifier
        self.credential = credential
        self.environment = environment
    }

    /// The value of a header; `name` in lower case.
    package func header(_ name: String) -> String? {
        headers.first { $0.name == name }?.value
    }

    /// The body as JSON; nil if it is not JSON.
    package var json: JSONValue? {
        // The error is irrelevant here: the gateway has answered it already.
        try? JSONValue(parsing: body)
    }

    /// The control API's form.
    package var description: JSONValue {
        [
            "sequence": .int(Int64(sequence)), "provider": .string(provider.rawValue), "token": .string(token),
            "connection": .int(Int64(clamping: connection)), "stream": .int(Int64(stream)), "method": .string(method),
            "path": .string(path), "body": json ?? .null, "body_bytes": .int(Int64(bodyBytes)),
            "headers": .object(
                Dictionary(headers.map { ($0.name, .string($0.value)) }, uniquingKeysWith: { first, _ in first })),
            "received_at": .int(receivedAt), "status": .int(Int64(status)), "reason": .string(reason),
            "identifier": .string(identifier), "credential": credential ?? .null,
            "environment": environment.map { .string($0.rawValue) } ?? .null,
        ]
    }

    /// Size of the record, for the ledger's bound.
    var storedBytes: Int {
        body.count + token.utf8.count + path.utf8.count + 256
            + headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 }
    }
}
