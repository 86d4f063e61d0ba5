/// What the operating system or libwebsockets refused: one sentence that says what, where and what to do.
package struct TransportError: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}
