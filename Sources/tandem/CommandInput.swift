import Foundation
import HubServer

/// An argument that may also come through a pipe.
enum CommandInput {
    /// More than any hub accepts in one request.
    private static let bytesMax = 16 << 20

    /// The argument, or for `-` all of standard input, byte for byte.
    /// - Parameter name: the argument's name, for errors.
    static func text(_ argument: String, name: String) throws(ServerError) -> String {
        guard argument == "-" else { return argument }
        var input = Data()
        do {
            while input.count <= bytesMax, let part = try FileHandle.standardInput.read(upToCount: bytesMax + 1 - input.count),
                !part.isEmpty
            {
                input += part
            }
        } catch {
            throw ServerError(.failed, "\(name): standard input cannot be read: \(error.localizedDescription)")
        }
        guard input.count <= bytesMax else {
            throw ServerError(.usage, "\(name): standard input has more than \(bytesMax) bytes, which no hub takes")
        }
        guard let text = String(validating: input, as: UTF8.self) else {
            throw ServerError(.usage, "\(name): standard input is not UTF-8 text: encode binary data, for instance with base64")
        }
        return text
    }
}
