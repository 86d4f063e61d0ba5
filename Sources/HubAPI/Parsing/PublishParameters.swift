internal import HubCore
internal import HubJSON

/// The members of an event that its sender put into the query (docs/protocol.md, 5.1: discouraged, and still to be accepted).
enum PublishParameters {
    private static let names = ["name", "data", "channel", "socket_id", "info", "idempotency_key", "deliver_at"]
    /// Number of parameters in every signed request: key, timestamp, version, signature.
    private static let ofSignature = 4

    /// The body with the members that only the query has. The body is unchanged if there are none, or if it is no JSON object.
    static func body(_ request: HTTPRequest) -> [UInt8] {
        // A request with a body has the MD5 as well. Nearly every publish has no further parameter and returns here.
        guard request.query.count > ofSignature + (request.body.isEmpty ? 0 : 1) else { return request.body }
        let parameters = request.query.filter { names.contains($0.name) }
        let channels = request.query.filter { isChannels($0.name) }.map { JSONValue.string($0.value) }
        guard !parameters.isEmpty || !channels.isEmpty, var members = members(request.body) else { return request.body }
        func isAbsent(_ name: String) -> Bool { members[name] == nil || members[name] == .null }
        if !channels.isEmpty, isAbsent("channels"), isAbsent("channel") { members["channels"] = .array(channels) }
        for parameter in parameters where isAbsent(parameter.name) {
            if parameter.name == "channel", !isAbsent("channels") { continue }
            members[parameter.name] = .string(parameter.value)
        }
        return JSONValue.object(members).serialized()
    }

    /// `channels[]=a&channels[]=b`, or with numbers between the brackets as PHP writes them.
    private static func isChannels(_ name: String) -> Bool {
        name.hasPrefix("channels[") && name.hasSuffix("]")
    }

    private static func members(_ body: [UInt8]) -> [String: JSONValue]? {
        if body.isEmpty { return [:] }
        return (try? JSONValue(parsing: body))?.objectValue
    }
}
