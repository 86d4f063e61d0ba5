internal import HubCore
internal import HubJSON
package import PusherProtocol

/// Stored form of a scheduled publish: the body of its request, without the parts that concern the answer.
package enum ScheduledRequest {
    /// Nesting depth of the stored text: an object with a list of channels.
    private static let depthMax = 4

    /// The publish in its stored form.
    package static func encode(_ request: PublishRequest) -> [UInt8] {
        let channels = JSONValue.array(request.channels.map { .string($0.text) }).serialized()
        var body = Array("{\"name\":".utf8) + JSONValue.string(request.name).serialized()
        body += Array(",\"channels\":".utf8) + channels
        // The token as sent: decoding and quoting could change its bytes.
        body += Array(",\"data\":".utf8) + request.data.bytes
        if let socketID = request.excludedSocketID {
            body += Array(",\"socket_id\":".utf8) + JSONValue.string(socketID.description).serialized()
        }
        body.append(UInt8(ascii: "}"))
        return body
    }

    /// The stored publish, checked against the app's current limits.
    package static func decode(_ stored: [UInt8], app: App) throws(PublishError) -> PublishRequest {
        let parser = JSONParser(capacityBytes: stored.count, depthMax: depthMax)
        return try PublishRequest.parse(event: stored, limits: PublishLimits(app), with: parser)
    }
}
