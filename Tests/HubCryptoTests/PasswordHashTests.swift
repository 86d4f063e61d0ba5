import HubCrypto
import Testing

@Suite("Password hashes")
struct PasswordHashTests {
    @Test("a hash knows its password, also after it was written down, and is salted")
    func matches() throws {
        let hash = PasswordHash(of: "correct horse")
        let read = try #require(PasswordHash(hash.text))
        #expect(read == hash && read.matches("correct horse"))
        #expect(!read.matches("correct horsf") && !read.matches("") && !read.matches(String(repeating: "x", count: 2000)))
        #expect(PasswordHash(of: "correct horse") != hash)
        #expect(!hash.text.contains("horse"))
    }

    @Test("agrees with another implementation of scrypt")
    func known() throws {
        // hashlib.scrypt(b"pleaseletmein", salt=bytes(range(16)), n=1<<15, r=8, p=3, maxmem=1<<26, dklen=32) of Python 3.11
        let hash = PasswordHash(of: "pleaseletmein", salt: Array(0..<16))
        #expect(hash.text == "scrypt.15.8.3.AAECAwQFBgcICQoLDA0ODw.dk4o267meGfekNCJh1GJwv6WsWTryiwe-mTmM62Sw8U")
    }

    @Test(
        "nothing else is a hash",
        arguments: [
            "", "scrypt", "bcrypt.15.8.3.AAECAwQFBgcICQoLDA0ODw.A", "scrypt.30.8.3.AAECAwQFBgcICQoLDA0ODw.",
            "scrypt.15.8.99.AAECAwQFBgcICQoLDA0ODw.", "scrypt.15.8.3.AAEC.", "scrypt.15.8.3..",
        ])
    func refused(text: String) {
        let digest = String(repeating: "A", count: 43)
        #expect(PasswordHash(text) == nil)
        if text.hasSuffix(".") { #expect(PasswordHash(text + digest) == nil, "with a digest") }
    }
}
