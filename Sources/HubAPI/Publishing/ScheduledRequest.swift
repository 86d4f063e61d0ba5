package import HubChannels
internal import HubCore
internal import HubJSON
package import PusherProtocol

/// A publish as it is written down until its time comes: the body of the request that it came with, without what concerns the answer.
package enum ScheduledRequest {
    /// How deep the stored text nests: an object with a list of channels.
    private static let depthMax = 4

    static func encode(_ request: PublishRequest) -> [UInt8] {
        let channels = JSONValue.array(request.channels.map { .string($0.text) }).serialized()
        var body = Array("{\"name\":".utf8) + JSONValue.string(request.name).serialized()
        body += Array(",\"channels\":".utf8) + channels
        // The token as it was sent: decoding it and quoting it again could change its bytes.
        body += Array(",\"data\":".utf8) + request.data.bytes
        if let socketID = request.excludedSocketID {
            body += Array(",\"socket_id\":".utf8) + JSONValue.string(socketID.description).serialized()
        }
        body.append(UInt8(ascii: "}"))
        return body
    }

    /// What is to be published, judged by the limits that the app has now.
    package static func decode(_ stored: [UInt8], app: App) throws(PublishError) -> PublishRequest {
        let parser = JSONParser(capacityBytes: stored.count, depthMax: depthMax)
        return try PublishRequest.parse(event: stored, limits: PublishLimits(app), with: parser)
    }
}
