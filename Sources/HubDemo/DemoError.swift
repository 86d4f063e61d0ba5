/// Why the demo cannot go on: the failure, its place and its remedy, in one line.
package struct DemoError: Error, Equatable, CustomStringConvertible {
    /// The whole line.
    package let message: String
    package var description: String { message }

    init(_ message: String) {
        self.message = message
    }
}
