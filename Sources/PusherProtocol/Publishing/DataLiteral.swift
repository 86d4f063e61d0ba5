package import HubCore
package import HubJSON

/// The `data` of an event as a JSON string literal, quotes and escapes included. Frames carry it unchanged.
///
/// A publisher's string keeps its token as sent and is never decoded, because other bytes would break signed or
/// encrypted data. Any other JSON value becomes a string of its compact text, because PusherSwift drops data that is no
/// string.
package struct DataLiteral: Hashable, Sendable {
    /// Valid JSON: one string token in UTF-8. Perhaps a part of the request's body; see `detached`.
    package let bytes: ArraySlice<UInt8>
    /// The size of the content in UTF-8, without quotes and escapes. Limits count these bytes.
    package let contentByteCount: Int

    /// Copies the text of `data` out of a document.
    package init(_ source: JSONSource) {
        var bytes: [UInt8] = []
        contentByteCount = source.appendStringLiteral(to: &bytes)
        self.bytes = bytes[...]
    }

    /// As `init(_:)`, but a string stays where it is, in the text that was parsed.
    package init(_ source: JSONSource, in text: [UInt8]) {
        guard let count = source.element.stringCount else {
            self.init(source)
            return
        }
        self.init(token: text[source.range], contentByteCount: count)
        assert(bytes.elementsEqual(source.bytes), "the data is from another text")
    }

    /// Quotes and escapes `content`.
    package init(content: String) {
        var bytes: [UInt8] = []
        JSONText.appendQuoted(content.utf8, to: &bytes)
        self.bytes = bytes[...]
        contentByteCount = content.utf8.count
    }

    /// A literal that was made before.
    /// - Parameters:
    ///   - token: its `bytes`.
    ///   - contentByteCount: its `contentByteCount`.
    package init(token: ArraySlice<UInt8>, contentByteCount: Int) {
        bytes = token
        self.contentByteCount = contentByteCount
    }

    /// The same data with bytes of its own, for whoever keeps it: otherwise the whole body would stay in memory.
    package var detached: DataLiteral { DataLiteral(token: Array(bytes)[...], contentByteCount: contentByteCount) }

    /// The content, decoded at every call.
    package var content: String {
        (try? JSONValue(parsing: Array(bytes)))?.stringValue ?? ""
    }

    /// The content parsed as JSON, for templates; nil when the publisher sent no JSON.
    package var contentValue: JSONValue? {
        try? JSONValue(parsing: content)
    }
}
