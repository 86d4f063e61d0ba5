internal import CLoadSockets
internal import Glibc

/// Reading: one call fills the shared buffer, and frames are parsed in place.
extension Worker {
    func receive(_ slot: Int) {
        let held = links[slot].carry.count
        unsafe links[slot].carry.copy(to: buffer)
        let room = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[held...])
        let count = unsafe read(slot, into: room)
        guard count > 0 else {
            if count < 0 { return }
            end(slot, code: nil, because: "the server ended the connection")
            return
        }
        counts.bytes += UInt64(count)
        counts.reads += 1
        let all = unsafe UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<(held + count)])
        guard let used = unsafe consume(slot, all) else { return }
        let rest = unsafe UnsafeRawBufferPointer(rebasing: all[used...])
        if rest.count + held > 0 { unsafe links[slot].carry.replace(with: rest) }
        // A message as large as the buffer could never be read completely.
        if unsafe rest.count >= buffer.count / 2, !growBuffer() { end(slot, code: nil, because: "a message is too long") }
        // OpenSSL may hold data that epoll does not see.
        if links[slot].isSecure, links[slot].phase != .free, secure?.hasPending(slot) == true { receive(slot) }
    }

    /// Bytes read; 0: the connection ended; -1: nothing there.
    private func read(_ slot: Int, into room: UnsafeMutableRawBufferPointer) -> Int {
        if links[slot].isSecure { return unsafe secure?.read(slot, into: room) ?? 0 }
        let count = unsafe recv(links[slot].descriptor, room.baseAddress, room.count, 0)
        if count >= 0 { return count }
        return errno == EAGAIN || errno == EINTR ? -1 : 0
    }

    /// Consumes all complete frames or answers.
    /// - Returns: bytes used; nil if the connection ended.
    private func consume(_ slot: Int, _ bytes: UnsafeRawBufferPointer) -> Int? {
        var used = 0
        if links[slot].phase == .upgrading {
            guard let head = unsafe finishUpgrading(slot, bytes) else { return nil }
            used = head
            if used == 0 { return 0 }
        }
        if links[slot].phase == .http { return unsafe takeAnswers(slot, bytes) }
        let generation = links[slot].generation
        let now = tandem_load_now()
        while true {
            switch unsafe WebSocketFrame.read(UnsafeRawBufferPointer(rebasing: bytes[used...])) {
            case .incomplete: return used
            case .malformed(let reason):
                end(slot, code: nil, because: reason)
                return nil
            case .frame(let frame):
                let start = used + frame.headCount
                used = start + frame.payloadCount
                unsafe take(slot, frame, UnsafeRawBufferPointer(rebasing: bytes[start..<used]), now: now)
                guard links[slot].generation == generation else { return nil }
            }
        }
    }

    @inline(__always)
    private func take(_ slot: Int, _ frame: WebSocketFrame, _ payload: UnsafeRawBufferPointer, now: UInt64) {
        switch frame.opcode {
        case WebSocketFrame.Opcode.text where frame.isFinal, WebSocketFrame.Opcode.binary where frame.isFinal:
            unsafe hear(slot, payload, now: now)
        case WebSocketFrame.Opcode.text, WebSocketFrame.Opcode.binary, WebSocketFrame.Opcode.continuation:
            unsafe pieces[slot, default: []].append(contentsOf: payload)
            guard frame.isFinal, let message = pieces.removeValue(forKey: slot) else { return }
            unsafe message.withUnsafeBytes { unsafe hear(slot, $0, now: now) }
        case WebSocketFrame.Opcode.ping:
            counts.pings += 1
            unsafe send(slot, WebSocketFrame.masked(opcode: WebSocketFrame.Opcode.pong, payload))
        case WebSocketFrame.Opcode.close:
            let code = unsafe payload.count >= 2 ? Int(payload[0]) << 8 | Int(payload[1]) : 1005
            let reason = unsafe String(decoding: payload.dropFirst(2), as: UTF8.self)
            // RFC 6455, 5.5.1: the same code in return.
            unsafe send(slot, WebSocketFrame.masked(opcode: WebSocketFrame.Opcode.close, payload.prefix(2)))
            end(slot, code: code, because: "the server closed with \(code) \(reason)")
        default: break
        }
    }

    @inline(__always)
    private func hear(_ slot: Int, _ message: UnsafeRawBufferPointer, now: UInt64) {
        guard links[slot].phase == .open else {
            takeSteps(slot, hearing: unsafe String(decoding: message, as: UTF8.self))
            return
        }
        let mark = unsafe EventMark.find(in: message, hint: &markHint)
        unsafe hear(slot, message, mark: mark, now: now)
        guard joinsEvents, mark != nil else { return }
        var from = markHint + EventMark.length
        while let other = unsafe EventMark.next(in: message, from: &from) { unsafe hear(slot, message, mark: other, now: now) }
    }

    @inline(__always)
    private func hear(_ slot: Int, _ message: UnsafeRawBufferPointer, mark: EventMark?, now: UInt64) {
        if let mark {
            if links[slot].isTallied { tally.take(mark, slot: slot, now: now, node: Int(links[slot].node)) }
        } else {
            counts.unmarked += 1
        }
        if links[slot].isListenedTo, let watcher = plans[slot]?.watcher { unsafe watcher.heard(slot, message, mark: mark, now: now) }
    }

    private func takeAnswers(_ slot: Int, _ bytes: UnsafeRawBufferPointer) -> Int? {
        let generation = links[slot].generation
        var used = 0
        while used < bytes.count {
            switch unsafe HTTPAnswer.read(UnsafeRawBufferPointer(rebasing: bytes[used...])) {
            case .incomplete: return used
            case .malformed(let reason):
                end(slot, code: nil, because: reason)
                return nil
            case .answer(let answer):
                used += answer.count
                plans[slot]?.watcher?.answered(slot, answer, now: tandem_load_now())
                guard links[slot].generation == generation else { return nil }
                if answer.closes {
                    end(slot, code: nil, because: "the server closes its HTTP connections")
                    return nil
                }
            }
        }
        return used
    }
}
