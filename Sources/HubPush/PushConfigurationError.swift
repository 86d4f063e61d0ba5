/// An unusable credential or address: the fault and the remedy. Never quotes a secret.
package struct PushConfigurationError: Error, Equatable, CustomStringConvertible {
    package let message: String
    package var description: String { message }

    package init(_ message: String) { self.message = message }
}

/// Reads a file of the configuration; tests and embedders pass their own.
package typealias CredentialReader = (_ path: String) throws(PushConfigurationError) -> [UInt8]
