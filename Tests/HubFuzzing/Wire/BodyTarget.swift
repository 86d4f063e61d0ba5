import HubTesting
import HubWire

/// The delimiting of request bodies and the decoding of chunks. The first two bytes of an input control how the rest is split into pieces.
enum BodyTarget {
    private static let bodyBytesMax = 2000

    @Sendable static func make() -> FuzzTarget {
        let tokens = [
            "\r\n", "0\r\n\r\n", "5\r\nabcde\r\n", ";x=y", "ffffffff\r\n", "7d0\r\n", "A: b\r\n", "000", "\r", "\n", " ", "-1", "chunked",
            "18446744073709551616",
        ]
        let source = InputSource("bodies", tokens: tokens) { random in
            let head = [UInt8(random.below(256)), UInt8(random.below(256))]
            return head + (random.chance(1, in: 5) ? Array(framing(&random).utf8) : chunks(&random))
        }
        return FuzzTarget(input: source.draw, check: check)
    }

    private static func framing(_ random: inout SeededRandom) -> String {
        let lengths = ["", "0", "5", "2000", "2001", "9223372036854775807", "9223372036854775808", "-1", "+5", "5,5", "٣", " 5", "0x10"]
        return random.element(of: lengths) + "\n" + random.element(of: ["", "chunked", "Chunked", "gzip", "gzip, chunked", "chunked "])
    }

    private static func chunks(_ random: inout SeededRandom) -> [UInt8] {
        var bytes: [UInt8] = []
        for _ in 0..<random.below(6) {
            let count = random.chance(1, in: 20) ? 900 + random.below(300) : 1 + random.below(30)
            bytes +=
                (String(count, radix: 16, uppercase: random.chance(1, in: 2)) + random.element(of: ["", "", "", ";e", ";e=\"1\"", " "])
                + "\r\n").utf8
            bytes += (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            bytes += "\r\n".utf8
        }
        return bytes + ("0\r\n" + random.element(of: ["", "", "A: b\r\n", "A: b\r\nC: d\r\n"]) + "\r\n").utf8
    }

    private static func check(_ bytes: [UInt8]) -> String? {
        guard bytes.count > 2 else { return nil }
        let body = Array(bytes.dropFirst(2))
        if let reason = framing(body) { return reason }
        let whole = decode(body, piece: { body.count })
        var random = SeededRandom(state: UInt64(bytes[0]))
        let most = 1 + Int(bytes[1])
        let pieces = decode(body, piece: { 1 + random.below(most) })
        if whole.progress != pieces.progress { return "in pieces it is \(pieces.progress), at once \(whole.progress)" }
        if whole.body.count > bodyBytesMax || pieces.body.count > bodyBytesMax { return "the body grew past its bound" }
        guard whole.progress == .complete else { return nil }
        if whole.body != pieces.body { return "in pieces it is another body" }
        return reference(body) == whole.body ? nil : "the reference reads another body"
    }

    private static func decode(_ bytes: [UInt8], piece: () -> Int) -> (progress: ChunkedBody.Progress, body: [UInt8]) {
        var decoder = ChunkedBody()
        var body: [UInt8] = []
        var position = 0
        while position < bytes.count {
            let end = min(bytes.count, position + max(1, piece()))
            let progress = bytes[position..<end].withUnsafeBytes { piece in
                var rest = piece
                return decoder.receive(&rest, into: &body, bodyBytesMax: bodyBytesMax)
            }
            if progress != .incomplete { return (progress, body) }
            position = end
        }
        return (.incomplete, body)
    }

    /// The body, decoded line by line; for complete inputs only.
    private static func reference(_ bytes: [UInt8]) -> [UInt8]? {
        var rest = bytes[...]
        var body: [UInt8] = []
        while let line = line(&rest) {
            guard let size = Int(String(decoding: line.prefix { $0 != 0x3B && $0 != 0x20 }, as: UTF8.self), radix: 16) else { return nil }
            if size == 0 { return body }
            guard rest.count >= size + 2 else { return nil }
            body += rest.prefix(size)
            rest = rest.dropFirst(size + 2)
        }
        return nil
    }

    private static func line(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let end = rest.firstIndex(of: 0x0D) else { return nil }
        defer { rest = rest[min(end + 2, rest.endIndex)...] }
        return rest[..<end]
    }

    private static func framing(_ bytes: [UInt8]) -> String? {
        let lines = bytes.split(separator: 0x0A, maxSplits: 1, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
        guard lines.count == 2 else { return nil }
        // An absent header differs from an empty one.
        let length = lines[0] == "-" ? nil : lines[0]
        let coding = lines[1].isEmpty ? nil : lines[1]
        do throws(HeadRefusal) {
            switch try BodyFraming.read(contentLength: length, transferEncoding: coding) {
            case .none: return coding == nil && (length == nil || Int(length ?? "") == 0) ? nil : "a body is taken for none"
            case .chunked: return coding?.lowercased() == "chunked" && length == nil ? nil : "taken for chunked"
            case .length(let count): return coding == nil && Int(length ?? "") == count && count > 0 ? nil : "a length of \(count)"
            }
        } catch {
            return error.status == 400 && !error.sentence.isEmpty ? nil : "a bad refusal: \(error)"
        }
    }
}
