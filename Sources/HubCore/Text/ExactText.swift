/// An id, compared byte by byte.
///
/// Clients, signatures and databases compare ids by bytes. Swift's `String` treats `é` of one scalar as equal to `é` of
/// two, so one user could pass for another.
package struct ExactText: Hashable, Sendable, CustomStringConvertible {
    /// The id as given.
    package let text: String

    /// The same bytes; O(1).
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
