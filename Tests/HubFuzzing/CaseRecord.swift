import Glibc

/// The input under check, in a file mapped by two processes: if the checking process dies, the other still has the input. One writer.
package final class CaseRecord {
    private let base: UnsafeMutableRawPointer
    private static let headerBytes = 4096
    private static let byteCount = headerBytes + FuzzTarget.inputBytesMax
    private static let sentenceOffset = 64

    private enum Field: Int {
        case checked = 0
        case length = 8
        case slowestMicroseconds = 16
        case sentenceLength = 24
    }

    /// Nil if the file cannot be created or mapped.
    package init?(path: String) {
        let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return nil }
        defer { Glibc.close(descriptor) }
        guard ftruncate(descriptor, Self.byteCount) == 0,
            let base = mmap(nil, Self.byteCount, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0), base != MAP_FAILED
        else { return nil }
        self.base = base
    }

    deinit {
        munmap(base, Self.byteCount)
    }

    private subscript(field: Field) -> UInt64 {
        get { base.load(fromByteOffset: field.rawValue, as: UInt64.self) }
        set { base.storeBytes(of: newValue, toByteOffset: field.rawValue, as: UInt64.self) }
    }

    /// Number of checked inputs.
    package var checked: Int { Int(self[.checked]) }
    /// Processor time of the slowest input.
    package var slowestMicroseconds: Int { Int(self[.slowestMicroseconds]) }
    /// The check's complaint; empty if there is none, or if the check never returned.
    package var sentence: String {
        String(decoding: UnsafeRawBufferPointer(start: base + Self.sentenceOffset, count: Int(self[.sentenceLength])), as: UTF8.self)
    }
    /// The input under check.
    package var input: [UInt8] { Array(UnsafeRawBufferPointer(start: base + Self.headerBytes, count: Int(self[.length]))) }

    func begin(_ input: [UInt8]) {
        input.withUnsafeBytes { bytes in
            if let start = bytes.baseAddress { memcpy(base + Self.headerBytes, start, min(bytes.count, FuzzTarget.inputBytesMax)) }
        }
        self[.length] = UInt64(min(input.count, FuzzTarget.inputBytesMax))
    }

    func end(microseconds: Int) {
        self[.checked] += 1
        if microseconds > slowestMicroseconds { self[.slowestMicroseconds] = UInt64(microseconds) }
    }

    /// Stores the check's complaint.
    package func fail(_ sentence: String) {
        let bytes = Array(sentence.utf8.prefix(Self.headerBytes - Self.sentenceOffset))
        bytes.withUnsafeBytes { if let start = $0.baseAddress { memcpy(base + Self.sentenceOffset, start, $0.count) } }
        self[.sentenceLength] = UInt64(bytes.count)
    }
}
