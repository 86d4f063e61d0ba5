package import HubCore
package import HubJSON

/// The `data` of an event as a JSON string literal, quotes and escapes included: what goes into a frame unchanged.
///
/// Publishers send a string, and subscribers must get exactly that string (the same value in other bytes would break
/// whoever signs or encrypts it), so its token is kept as it was sent and never decoded on the way. Any other JSON value
/// is kept as its compact text in a string, because PusherSwift drops data that is no string.
package struct DataLiteral: Hashable, Sendable {
    /// Valid JSON: one string token in UTF-8.
    package let bytes: [UInt8]
    /// The size of the content in UTF-8, without quotes and escapes: what limits are counted in.
    package let contentByteCount: Int

    /// Copies the text of `data` out of a document.
    package init(_ source: JSONSource) {
        var bytes: [UInt8] = []
        contentByteCount = source.appendStringLiteral(to: &bytes)
        self.bytes = bytes
    }

    /// A literal with that content.
    package init(content: String) {
        var bytes: [UInt8] = []
        JSONText.appendQuoted(content.utf8, to: &bytes)
        self.bytes = bytes
        contentByteCount = content.utf8.count
    }

    /// The content, decoded at every call.
    package var content: String {
        (try? JSONValue(parsing: bytes))?.stringValue ?? ""
    }

    /// The content read as JSON, as templates need it; nil when it is no JSON, which publishers are free to send.
    package var contentValue: JSONValue? {
        try? JSONValue(parsing: content)
    }
}
