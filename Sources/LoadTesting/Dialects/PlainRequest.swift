/// An unsigned publish over HTTP, for the simple peers of a comparison.
enum PlainRequest {
    /// - Parameters:
    ///   - authority: for `Host:`.
    ///   - path: needs no escapes; channels of comparisons are named by the load tester.
    static func post(_ path: String, authority: String, body: String) -> [UInt8] {
        let content = Array(body.utf8)
        let head =
            "POST \(path) HTTP/1.1\r\nHost: \(authority)\r\nContent-Type: application/json\r\nContent-Length: \(content.count)\r\n\r\n"
        return Array(head.utf8) + content
    }
}
