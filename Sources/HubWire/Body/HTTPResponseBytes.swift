package import HubCore

/// An HTTP/1.1 answer as bytes: status line, headers and body for one write.
package enum HTTPResponseBytes {
    /// Encodes one answer.
    /// - Parameter isHead: the request was a HEAD, whose answer has no body.
    package static func encode(_ response: HTTPResponse, isHead: Bool, behind: Persistence) -> [UInt8] {
        if response.isEmptyObject, response.headers.isEmpty, behind == .goesOn, !isHead { return emptyObject }
        return written(response, isHead: isHead, behind: behind)
    }

    /// The answer to nearly every publish.
    private static let emptyObject = written(
        HTTPResponse(status: 200, body: Array("{}".utf8)), isHead: false, behind: .goesOn)

    private static func written(_ response: HTTPResponse, isHead: Bool, behind: Persistence) -> [UInt8] {
        assert(!response.contentType.utf8.contains { $0 < 0x20 }, "\(response.contentType) is no content type")
        var output: [UInt8] = []
        output.reserveCapacity(160 + response.body.count)
        // Nearly every answer begins with these bytes; all others are written piece by piece.
        if response.status == 200, response.contentType == json {
            output.append(literal: "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ")
        } else {
            output +=
                "HTTP/1.1 \(response.status) \(reason(response.status))\r\ncontent-type: \(response.contentType)\r\ncontent-length: ".utf8
        }
        output.append(decimal: UInt64(response.body.count))
        switch behind {
        case .goesOn: break
        case .goesOnAsSaid: output.append(literal: "\r\nconnection: keep-alive")
        case .ends: output.append(literal: "\r\nconnection: close")
        }
        for header in response.headers {
            assert(header.name.utf8.allSatisfy(RequestHead.isToken), "\(header.name) is no header's name")
            output += "\r\n".utf8
            output += header.name.utf8
            output += ": ".utf8
            // A line break in a value would let its author write headers of their own.
            output += header.value.utf8.lazy.filter { $0 != 13 && $0 != 10 }
        }
        output.append(literal: "\r\n\r\n")
        if !isHead { output += response.body }
        return output
    }

    /// The connection's state after the answer.
    package enum Persistence: Sendable {
        case goesOn
        /// An HTTP/1.0 peer, which needs the header `connection: keep-alive`.
        case goesOnAsSaid
        case ends
    }

    /// Asks a waiting peer for its body.
    package static let goOn = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)

    fileprivate static let json = "application/json"

    private static func reason(_ status: Int) -> String {
        switch status {
        case 200: "OK"
        case 201: "Created"
        case 202: "Accepted"
        case 204: "No Content"
        case 301: "Moved Permanently"
        case 304: "Not Modified"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 410: "Gone"
        case 413: "Content Too Large"
        case 415: "Unsupported Media Type"
        case 417: "Expectation Failed"
        case 422: "Unprocessable Content"
        case 426: "Upgrade Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 505: "HTTP Version Not Supported"
        // A status line may do without (RFC 9112, 4).
        default: ""
        }
    }
}

extension HTTPResponse {
    /// Whether this is a 200 with the body `{}`.
    fileprivate var isEmptyObject: Bool {
        status == 200 && body.count == 2 && body[0] == UInt8(ascii: "{") && body[1] == UInt8(ascii: "}")
            && contentType == HTTPResponseBytes.json
    }
}
