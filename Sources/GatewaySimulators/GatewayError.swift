/// Why the simulators cannot start: the failure, its place and its remedy, in one line.
package struct GatewayError: Error, Equatable, CustomStringConvertible {
    package let message: String
    package var description: String { message }

    package init(_ message: String) {
        self.message = message
    }
}
