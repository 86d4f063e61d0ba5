import COpenSSL
import Glibc

/// The result of one attempt to move bytes.
enum TransferOutcome: Equatable {
    case moved(Int)
    /// Try again when the socket is readable, respectively writable.
    case needsReading, needsWriting
    /// The peer closed its side.
    case ended
    case failed
}

/// One TLS session over a non-blocking socket; used on its server's thread only.
///
/// OpenSSL writes with write(2), which would raise SIGPIPE on a closed socket: the server's thread blocks that signal.
@safe final class TLSStream {
    private let handle: OpaquePointer

    /// Takes ownership of the session.
    init(owning handle: OpaquePointer) {
        unsafe self.handle = unsafe handle
    }

    deinit {
        unsafe SSL_free(handle)
    }

    func handshake() -> TransferOutcome {
        ERR_clear_error()
        let status = unsafe SSL_do_handshake(handle)
        return status == 1 ? .moved(0) : outcome(of: status)
    }

    /// The protocol agreed on by ALPN; nil when the client offered none.
    var negotiatedProtocol: String? {
        var bytes: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        unsafe SSL_get0_alpn_selected(handle, &bytes, &count)
        guard count > 0 else { return nil }
        return unsafe String(decoding: UnsafeBufferPointer(start: bytes, count: Int(count)), as: UTF8.self)
    }

    /// Whether the handshake resumed an earlier session instead of sending a certificate.
    var isResumed: Bool { unsafe SSL_session_reused(handle) == 1 }

    func read(into buffer: UnsafeMutableBufferPointer<UInt8>) -> TransferOutcome {
        ERR_clear_error()
        let count = unsafe SSL_read(handle, buffer.baseAddress, Int32(clamping: buffer.count))
        return count > 0 ? .moved(Int(count)) : outcome(of: count)
    }

    func write(_ bytes: UnsafeBufferPointer<UInt8>) -> TransferOutcome {
        ERR_clear_error()
        let count = unsafe SSL_write(handle, bytes.baseAddress, Int32(clamping: bytes.count))
        return count > 0 ? .moved(Int(count)) : outcome(of: count)
    }

    /// Sends close_notify if the socket accepts it now.
    func close() {
        ERR_clear_error()
        unsafe SSL_shutdown(handle)
        ERR_clear_error()
    }

    private func outcome(of status: Int32) -> TransferOutcome {
        switch unsafe SSL_get_error(handle, status) {
        case SSL_ERROR_WANT_READ: return .needsReading
        case SSL_ERROR_WANT_WRITE: return .needsWriting
        case SSL_ERROR_ZERO_RETURN: return .ended
        default:
            ERR_clear_error()
            return .failed
        }
    }
}

/// Plain TCP with the same outcomes.
enum PlainSocket {
    static func read(_ descriptor: Int32, into buffer: UnsafeMutableBufferPointer<UInt8>) -> TransferOutcome {
        outcome(of: unsafe recv(descriptor, buffer.baseAddress, buffer.count, 0), waiting: .needsReading)
    }

    static func write(_ descriptor: Int32, _ bytes: UnsafeBufferPointer<UInt8>) -> TransferOutcome {
        outcome(of: unsafe send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL)), waiting: .needsWriting)
    }

    private static func outcome(of count: Int, waiting: TransferOutcome) -> TransferOutcome {
        if count > 0 { return .moved(count) }
        if count == 0 { return .ended }
        return errno == EAGAIN || errno == EINTR ? waiting : .failed
    }
}
