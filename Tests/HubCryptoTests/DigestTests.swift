import HubCrypto
import Testing

@Suite("Digest, HMAC and text encodings")
struct DigestTests {
    @Test(
        "MD5 gives the digests of RFC 1321",
        arguments: [
            ("", "d41d8cd98f00b204e9800998ecf8427e"), ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
        ])
    func md5(message: String, digest: String) {
        #expect(Hex.encode(Digest.md5(message.utf8)) == digest)
    }

    @Test(
        "SHA-256 gives the digests of FIPS 180-4",
        arguments: [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ])
    func sha256(message: String, digest: String) {
        #expect(Hex.encode(Digest.sha256(message.utf8)) == digest)
    }

    @Test("every byte has its two digits, at every place of a text")
    func digits() {
        let known = Array("0123456789abcdef")
        let bytes = (0...255).map { UInt8($0) }
        for start in 0..<256 {
            for count in [0, 1, 3, 4, 5, 8, 11] {
                let piece = Array((bytes + bytes)[start..<(start + count)])
                #expect(Hex.encode(piece) == String(piece.flatMap { [known[Int($0 >> 4)], known[Int($0 & 15)]] }))
            }
        }
    }

    @Test("HMAC-SHA-256 gives the values of RFC 4231 and of empty keys and messages")
    func hmac() {
        let hmac = { (key: [UInt8], message: [UInt8]) in Hex.encode(HMAC.sha256(key: key, message: message)) }
        #expect(
            hmac([UInt8](repeating: 0x0B, count: 20), Array("Hi There".utf8))
                == "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")
        #expect(
            hmac(Array("Jefe".utf8), Array("what do ya want for nothing?".utf8))
                == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
        // Longer than a block: the key itself is hashed first.
        #expect(
            hmac([UInt8](repeating: 0xAA, count: 131), Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8))
                == "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54")
        #expect(hmac([], []) == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad")
        #expect(
            HMAC.sha256(key: "Jefe".utf8, message: "what do ya want for nothing?".utf8)
                == HMAC.sha256(key: Array("Jefe".utf8), message: ArraySlice("what do ya want for nothing?".utf8)))
    }

    @Test(
        "a key made ready serves any number of messages; up to a block it is padded, beyond it is hashed first",
        arguments: [0, 1, 63, 64, 65, 200])
    func readyKeys(count: Int) {
        let secret = [UInt8](repeating: 0x5C, count: count)
        let key = HMACKey(secret)
        for length in [0, 1, 55, 56, 63, 64, 65, 1000] {
            let message = [UInt8](repeating: 0x36, count: length)
            #expect(key.code(of: message) == HMAC.sha256(key: secret, message: message))
            let same = count > 64 ? Digest.sha256(secret) : secret + [UInt8](repeating: 0, count: 64 - count)
            #expect(key.code(of: message) == HMACKey(same).code(of: message))
            #expect(key.code(of: message) != HMACKey(secret + [1]).code(of: message))
        }
    }

    @Test("HMAC is right on many threads at once")
    func concurrentHMAC() async {
        let expected = Hex.encode(HMAC.sha256(key: "Jefe".utf8, message: "what do ya want for nothing?".utf8))
        let wrong = await withTaskGroup(of: Int.self) { group in
            for task in 0..<8 {
                group.addTask {
                    (0..<2000).count { round in
                        _ = HMAC.sha256(key: "key \(task)".utf8, message: "message \(round)".utf8)
                        return Hex.encode(HMAC.sha256(key: "Jefe".utf8, message: "what do ya want for nothing?".utf8)) != expected
                    }
                }
            }
            return await group.reduce(0, +)
        }
        #expect(wrong == 0)
    }

    @Test("hex takes both cases and refuses anything else")
    func hex() {
        #expect(Hex.encode([0, 0x0F, 0xA5, 0xFF]) == "000fa5ff")
        #expect(Hex.digits(of: [0, 0x0F, 0xA5, 0xFF]) == Array("000fa5ff".utf8))
        #expect(Hex.decode("000fA5fF") == [0, 0x0F, 0xA5, 0xFF])
        #expect(Hex.decode("") == [])
        for text in ["0", "0g", "abc", "0x", "é"] { #expect(Hex.decode(text) == nil, "\(text)") }
    }

    @Test("unpadded URL base64 round-trips every length and refuses other spellings")
    func base64URL() {
        #expect(Base64URL.encode([0xFB, 0xFF]) == "-_8")
        #expect(Base64URL.encode(Array("foobar".utf8)) == "Zm9vYmFy")
        #expect(Base64URL.encode(Array("foob".utf8)) == "Zm9vYg")
        for count in 0..<40 {
            let bytes = SecureRandom.bytes(count)
            #expect(Base64URL.decode(Base64URL.encode(bytes)) == bytes)
        }
        for text in ["A", "Zm9vYg==", "+/8", "-_9", "Zm9v Yg", "AAAAA"] { #expect(Base64URL.decode(text) == nil, "\(text)") }
    }

    @Test("comparison sees every single-bit difference and the length")
    func comparison() {
        let bytes = SecureRandom.bytes(32)
        #expect(constantTimeEquals(bytes, bytes))
        #expect(constantTimeEquals([], []))
        #expect(!constantTimeEquals(bytes, bytes.dropLast()))
        for bit in 0..<256 {
            var other = bytes
            other[bit / 8] ^= 1 << (bit % 8)
            #expect(!constantTimeEquals(bytes, other))
        }
    }

    @Test("random bytes differ")
    func random() {
        #expect(SecureRandom.bytes(16).count == 16)
        #expect(SecureRandom.bytes(16) != SecureRandom.bytes(16))
        #expect(SecureRandom.bytes(0) == [])
    }
}
