import Glibc

/// A WebSocket client that holds one conversation with a server on 127.0.0.1, and judges it. Blocks its thread.
package final class WireClient {
    /// The result of a conversation.
    package struct Outcome: Sendable {
        /// The server's faults; empty if it behaved correctly.
        package var complaints: [String] = []
        /// Whether all answers arrived, and a mistake was detected as early as possible.
        package var isStrict = true
    }

    private let descriptor: Int32
    private var input: [UInt8] = []
    private var frames: [WireFrame] = []
    private var hasEnded = false
    private var outcome = Outcome()

    /// Waits count slices instead of time: a busy machine stretches the slices and the server's work alike.
    private static let sliceMilliseconds: Int32 = 10
    /// Twenty seconds on an idle machine.
    private static let patience = 2_000 * SlowBuild.factor
    /// Three seconds on an idle machine. A server should wait at most one second for the answer to its close frame.
    private static let patienceForEnd = 300 * SlowBuild.factor
    private static let momentSlices = 15

    /// Connects and upgrades; nil unless the server answers with 101.
    package init?(port: Int, path: String) {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(UInt16(port).bigEndian)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var (yes, limit): (Int32, timeval) = (1, timeval(tv_sec: 20 * SlowBuild.factor, tv_usec: 0))
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let code = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        }
        guard code == 0 else { return nil }
        send(
            Array(
                """
                GET \(path) HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n
                """.utf8))
        wait(slices: Self.patience, readsFrames: false) { $0.headEnd != nil }
        guard let end = headEnd, input.starts(with: "HTTP/1.1 101 ".utf8) else { return nil }
        input.removeFirst(end)
    }

    /// Start of the first frame; nil until the upgrade's answer is complete.
    private var headEnd: Int? {
        let blankLine = Array("\r\n\r\n".utf8)
        guard input.count >= blankLine.count else { return nil }
        return (blankLine.count...input.count).first { input[($0 - blankLine.count)..<$0].elementsEqual(blankLine) }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Holds the conversation.
    /// - Parameter echoes: false if the server sends messages of its own, which do not count.
    package func hold(_ item: WireCase, echoes: Bool = true) -> Outcome {
        let expected = echoes ? item.answers : item.answers.filter(\.isControl)
        // PINGs do not count: a server may check whether the client is alive.
        func answers() -> [WireFrame] { frames.filter { $0.opcode != 8 && $0.opcode != 9 && (echoes || $0.isControl) } }
        // The rest of the upgrade's segment.
        takeFrames()
        for step in item.steps {
            switch step {
            case .send(let bytes, let count):
                guard !hasEnded else { continue }
                let count = max(count ?? bytes.count, 1)
                for start in stride(from: 0, to: bytes.count, by: count) {
                    guard send(Array(bytes[start..<min(start + count, bytes.count)])) else { break }
                }
            case .answers(let count):
                let count = echoes ? count : item.answers.prefix(count).count(where: \.isControl)
                wait(slices: Self.patience) { $0.closeFrame != nil || answers().count >= count }
            case .quiet:
                wait(slices: Self.momentSlices) { $0.closeFrame != nil }
                if closeFrame != nil || hasEnded { complain("the server ended the connection before the mistake") }
            case .moment:
                wait(slices: Self.momentSlices) { $0.closeFrame != nil }
                if closeFrame == nil { outcome.isStrict = false }
            }
        }
        if case .closedByClient = item.end {
            wait(slices: Self.patience) { $0.closeFrame != nil || answers().count >= expected.count }
            if closeFrame != nil || hasEnded { complain("the server ended the connection") }
            send(ClientFrame.close(1000).bytes)
        }
        wait(slices: Self.patience) { $0.closeFrame != nil }
        wait(slices: Self.patienceForEnd) { _ in false }
        judge(item, answers(), expected)
        return outcome
    }

    private var closeFrame: WireFrame? { frames.first { $0.opcode == 8 } }

    private func judge(_ item: WireCase, _ answers: [WireFrame], _ expected: [WireFrame]) {
        func say(_ frames: [WireFrame]) -> String {
            let parts = frames.map { "\($0.opcode): \(String(decoding: $0.payload.prefix(40), as: UTF8.self)) (\($0.payload.count))" }
            return "[" + parts.joined(separator: ", ") + "]"
        }
        let isWhole = answers == expected
        let codes: [Int?]
        switch item.end {
        case .closedByClient: codes = [1000]
        case .closeAnswered(let allowed), .undefined(let allowed): codes = allowed
        case .failed(let allowed): codes = allowed
        }
        switch item.end {
        case .closedByClient, .closeAnswered: if !isWhole { complain("the answers are \(say(answers)), not \(say(expected))") }
        case .failed, .undefined:
            if !expected.starts(with: answers) { complain("the answers are \(say(answers)), at most \(say(expected))") }
        }
        if !isWhole { outcome.isStrict = false }
        if let closeFrame {
            if !codes.contains(closeFrame.closeCode) {
                let allowed = codes.map { $0.map(String.init) ?? "none" }.joined(separator: ", ")
                complain("the close code is \(closeFrame.closeCode.map(String.init) ?? "missing"), not \(allowed)")
            }
            if let last = frames.last, last != closeFrame { complain("a frame behind the close frame: \(say([last]))") }
        } else {
            complain("no close frame")
        }
        if !hasEnded { complain("TCP goes on behind the close frame") }
    }

    private func complain(_ sentence: String) {
        outcome.complaints.append(sentence)
    }

    @discardableResult private func send(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// Reads until the condition is met, the server ends the connection, or the time is up.
    private func wait(slices: Int, readsFrames: Bool = true, _ isMet: (WireClient) -> Bool) {
        var left = slices
        while left > 0, !hasEnded, !isMet(self) {
            var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&wanted, 1, Self.sliceMilliseconds) > 0 else {
                left -= 1
                continue
            }
            let bytes = [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
                count = max(0, recv(descriptor, buffer.baseAddress, buffer.count, 0))
            }
            hasEnded = bytes.isEmpty
            input += bytes
            if readsFrames { takeFrames() }
        }
    }

    private func takeFrames() {
        while input.count >= 2 {
            if input[0] & 0x70 != 0 || input[1] & 0x80 != 0 { complain("the server's frame begins with \(input.prefix(2))") }
            let form = input[1] & 0x7F
            let headerByteCount = form < 126 ? 2 : form == 126 ? 4 : 10
            guard input.count >= headerByteCount else { return }
            let length = form < 126 ? Int(form) : input[2..<headerByteCount].reduce(0) { $0 << 8 | Int($1) }
            guard input.count >= headerByteCount + length else { return }
            if input[0] & 0x80 == 0 { complain("the server sends a fragment") }
            frames.append(WireFrame(input[0] & 15, Array(input[headerByteCount..<headerByteCount + length])))
            input.removeFirst(headerByteCount + length)
        }
    }
}
