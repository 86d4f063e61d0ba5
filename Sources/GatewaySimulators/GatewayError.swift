/// Why the simulators cannot start: the failure, its place and its remedy, in one line.
package struct GatewayError: Error, Equatable, CustomStringConvertible {
    package let message: String
    package var description: String { message }

    package init(_ message: String) {
        self.message = message
    }

    /// The result of `body`, whose errors become a `GatewayError` with the same sentence.
    static func wrapping<Result>(_ body: () throws -> Result) throws(GatewayError) -> Result {
        do {
            return try body()
        } catch {
            throw GatewayError("\(error)")
        }
    }
}
