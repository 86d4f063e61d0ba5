/// Why the simulators cannot start: what failed, where, and what to do about it, in one line.
package struct GatewayError: Error, Equatable, CustomStringConvertible {
    package let message: String
    package var description: String { message }

    package init(_ message: String) {
        self.message = message
    }
}
