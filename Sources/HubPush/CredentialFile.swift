internal import Glibc

/// Reads credential files, with errors that an operator can act on.
package enum CredentialFile {
    /// Keys and service accounts have a few kilobytes; a much larger file is a mistake.
    package static let bytesMax = 64 * 1024

    /// Reads the whole file.
    /// - Throws: an error with the path, the fault and the remedy.
    package static func read(_ path: String) throws(PushConfigurationError) -> [UInt8] {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            switch errno {
            case ENOENT: throw PushConfigurationError("\(path): no such file; check the path")
            case EACCES: throw PushConfigurationError("\(path): this user may not read it; change the file's owner or mode")
            case let code: throw PushConfigurationError("\(path): cannot be opened (\(unsafe String(cString: strerror(code))))")
            }
        }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: bytesMax + 1)
        var count = 0
        while count < bytes.count {
            let offset = count
            let received = unsafe bytes.withUnsafeMutableBytes { buffer in
                unsafe Glibc.read(descriptor, buffer.baseAddress.map { unsafe $0 + offset }, buffer.count - offset)
            }
            if received < 0 {
                if errno == EINTR { continue }
                throw PushConfigurationError(
                    "\(path): cannot be read (\(unsafe String(cString: strerror(errno)))); is it a file?")
            }
            if received == 0 { break }
            count += received
        }
        guard count > 0 else { throw PushConfigurationError("\(path): the file is empty; download the credential again") }
        guard count <= bytesMax else {
            throw PushConfigurationError("\(path): larger than \(bytesMax) bytes, so not a credential; check the path")
        }
        return Array(bytes[..<count])
    }
}
