/// One command for Redis: its name and its arguments.
package struct RedisCommand: Sendable, Equatable {
    /// As Redis gets them.
    package var words: [[UInt8]]

    package init(_ words: [UInt8]...) { self.words = words }

    /// - Parameter name: the command, with further words split at spaces.
    package init(_ name: StaticString, _ words: [[UInt8]] = []) {
        let bytes = unsafe Array(UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        self.words = bytes.split(separator: UInt8(ascii: " ")).map { Array($0) } + words
    }

    /// - Parameter name: the command, with further words split at spaces.
    package init(_ name: StaticString, texts: [String]) { self.init(name, texts.map { Array($0.utf8) }) }

    /// Appends the command in RESP2.
    package func encode(into output: inout [UInt8]) {
        func line(_ mark: Unicode.Scalar, _ number: Int) {
            output.append(UInt8(ascii: mark))
            output.append(contentsOf: String(number).utf8)
            output.append(contentsOf: "\r\n".utf8)
        }
        line("*", words.count)
        for word in words {
            line("$", word.count)
            output.append(contentsOf: word)
            output.append(contentsOf: "\r\n".utf8)
        }
    }
}
