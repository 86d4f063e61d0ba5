/// Text that equals another byte by byte only: an id.
///
/// Clients, signatures and databases compare ids so. To Swift's `String`, `é` of one scalar equals `é` of two, and whoever signs in
/// under the one would be taken for the other.
package struct ExactText: Hashable, Sendable, CustomStringConvertible {
    package let text: String

    package init(_ text: String) {
        self.text = text
    }

    package var description: String { text }

    package static func == (a: ExactText, b: ExactText) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }

    package func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { unsafe hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}
