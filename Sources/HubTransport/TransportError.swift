/// A refusal by the operating system or libwebsockets: one sentence with mistake, place and remedy.
package struct TransportError: Error, CustomStringConvertible {
    package let description: String

    /// One sentence.
    package init(_ description: String) {
        self.description = description
    }
}
