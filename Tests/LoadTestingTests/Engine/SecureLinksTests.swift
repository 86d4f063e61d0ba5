import COpenSSL
import Foundation
import Glibc
import HubTesting
import Testing

@testable import LoadTesting

/// The server's end of one TLS connection over a pair of sockets, with a thread of its own for the handshake.
private final class SecureEnd {
    private let server: Int32
    private let client: Int32
    private let session: OpaquePointer

    /// Shakes hands with a new connection of `links`.
    init(_ context: OpaquePointer, _ links: SecureLinks, slot: Int) throws {
        var pair: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &pair) == 0)
        server = pair[0]
        client = pair[1]
        let session = try #require(SSL_new(context))
        self.session = session
        SSL_set_fd(session, server)
        // The handshake's thread alone uses it until `accepted`.
        nonisolated(unsafe) let accepting = session
        let accepted = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            SSL_accept(accepting)
            accepted.signal()
        }
        links.begin(slot, descriptor: client, host: "localhost")
        #expect(links.handshake(slot) == .done)
        accepted.wait()
        _ = fcntl(client, F_SETFL, O_NONBLOCK)
    }

    deinit {
        SSL_free(session)
        close(server)
        close(client)
    }

    func say(_ text: String) { SSL_write(session, text, Int32(text.utf8.count)) }
    func cutOff() { shutdown(server, Int32(SHUT_RDWR)) }
}

@Suite("TLS of the load tester")
struct SecureLinksTests {
    @Test("a connection that ends without a farewell does not take the others of its thread along")
    func abruptEnd() throws {
        signal(SIGPIPE, SIG_IGN)
        let certificate = try TestCertificate()
        let context = try #require(SSL_CTX_new(TLS_server_method()))
        defer { SSL_CTX_free(context) }
        #expect(SSL_CTX_use_certificate_chain_file(context, certificate.certificatePath) == 1)
        #expect(SSL_CTX_use_PrivateKey_file(context, certificate.keyPath, SSL_FILETYPE_PEM) == 1)
        let links = try SecureLinks()
        let (first, second) = try (SecureEnd(context, links, slot: 0), SecureEnd(context, links, slot: 1))
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 100, alignment: 1)
        defer { room.deallocate() }

        // The server's tickets.
        #expect(links.read(1, into: room) == -1)
        first.cutOff()
        #expect(links.read(0, into: room) == 0)
        #expect(links.read(1, into: room) == -1)
        second.say("still here")
        #expect(links.read(1, into: room) == 10)
        links.free(0)
        links.free(1)
    }
}
