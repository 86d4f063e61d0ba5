internal import CLoadSockets
internal import Glibc

/// Writing: at once as far as the kernel takes it, the rest when there is room.
extension Worker {
    /// Sends a message as text or binary, as the dialect requires.
    func sendMessage(_ slot: Int, _ text: String) {
        let opcode = plans[slot]?.isBinary == true ? WebSocketFrame.Opcode.binary : WebSocketFrame.Opcode.text
        send(slot, WebSocketFrame.masked(opcode: opcode, text.utf8))
    }

    func send(_ slot: Int, _ bytes: [UInt8]) {
        if unwritten[slot] != nil {
            unwritten[slot]?.append(contentsOf: bytes)
            return
        }
        let count = write(slot, bytes)
        guard count < bytes.count else { return }
        unwritten[slot] = Array(bytes[max(0, count)...])
        links[slot].wantsWriting = true
        _ = tandem_load_poll_change(poll, links[slot].descriptor, tag(slot), 1)
    }

    func writeRest(_ slot: Int) {
        guard let rest = unwritten[slot] else { return }
        let count = max(0, write(slot, rest))
        if count < rest.count {
            unwritten[slot] = Array(rest[count...])
            return
        }
        unwritten[slot] = nil
        links[slot].wantsWriting = false
        _ = tandem_load_poll_change(poll, links[slot].descriptor, tag(slot), 0)
    }

    /// Bytes written. A broken connection shows at the next read.
    private func write(_ slot: Int, _ bytes: [UInt8]) -> Int {
        if links[slot].isSecure { return secure?.write(slot, bytes) ?? 0 }
        return unsafe bytes.withUnsafeBytes { unsafe Glibc.send(links[slot].descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    }
}
