import HubCrypto
import Testing

@Suite("JSON Web Signatures")
struct SignatureTests {
    private let message = Array("header.payload".utf8)

    /// Many rounds, because only one signature in 128 has an integer that needs padding on the left.
    @Test("ES256 makes 64 bytes that verify, whatever the integers' lengths")
    func es256() throws {
        let key = try ES256PrivateKey(pem: ES256PrivateKey.generate().pem)
        let publicKey = try ES256PublicKey(pem: key.publicKeyPEM)
        var shortIntegers = 0
        for round in 0..<2000 {
            let message = Array("message \(round)".utf8)
            let signature = try key.signature(for: message)
            #expect(signature.count == 64)
            #expect(publicKey.isValid(signature: signature, for: message))
            if signature[0] == 0 || signature[32] == 0 { shortIntegers += 1 }
        }
        #expect(shortIntegers > 0, "2000 rounds without one short integer happen once in six million runs")
    }

    /// RFC 7515, A.3: a signature made elsewhere.
    @Test("ES256 verifies the example of RFC 7515")
    func es256Example() throws {
        let pem = """
            -----BEGIN PUBLIC KEY-----
            MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV7
            6e8Tus9uPHvRVEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==
            -----END PUBLIC KEY-----
            """
        let input = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
        let signature = try #require(
            Base64URL.decode("DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"))
        #expect(try ES256PublicKey(pem: pem).isValid(signature: signature, for: Array(input.utf8)))
    }

    @Test("ES256 refuses another key, every flipped bit, another message and other lengths")
    func es256Refusals() throws {
        let key = ES256PrivateKey.generate()
        let publicKey = try ES256PublicKey(pem: key.publicKeyPEM)
        let signature = try key.signature(for: message)
        #expect(try !ES256PublicKey(pem: ES256PrivateKey.generate().publicKeyPEM).isValid(signature: signature, for: message))
        #expect(!publicKey.isValid(signature: signature, for: message + [0]))
        for bit in 0..<signature.count * 8 {
            var other = signature
            other[bit / 8] ^= 1 << (bit % 8)
            #expect(!publicKey.isValid(signature: other, for: message))
        }
        for other in [[], Array(signature.dropLast()), signature + [0], [UInt8](repeating: 0, count: 64)] {
            #expect(!publicKey.isValid(signature: other, for: message))
        }
    }

    @Test("RS256 verifies its own signature and refuses another key, message or bit")
    func rs256() throws {
        let key = try RS256PrivateKey(pem: RS256PrivateKey.generate(bits: 2048).pem)
        let publicKey = try RS256PublicKey(pem: key.publicKeyPEM)
        let signature = try key.signature(for: message)
        #expect(signature.count == 256)
        #expect(publicKey.isValid(signature: signature, for: message))
        #expect(!publicKey.isValid(signature: signature, for: message + [0]))
        #expect(try !RS256PublicKey(pem: RS256PrivateKey.generate(bits: 2048).publicKeyPEM).isValid(signature: signature, for: message))
        for bit in stride(from: 0, to: signature.count * 8, by: 17) {
            var other = signature
            other[bit / 8] ^= 1 << (bit % 8)
            #expect(!publicKey.isValid(signature: other, for: message))
        }
        #expect(!publicKey.isValid(signature: [], for: message))
    }

    @Test("what is no key of the wanted kind is a clear error")
    func badKeys() {
        let ec = ES256PrivateKey.generate()
        let rsa = RS256PrivateKey.generate(bits: 2048)
        let shortKey = RS256PrivateKey.generate(bits: 1024)
        let cut = String(ec.pem.dropLast(60))
        for pem in ["", "not a key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", cut, ec.publicKeyPEM] {
            #expect { try ES256PrivateKey(pem: pem) } throws: { mentions($0, "cannot read the private key for ES256") }
        }
        #expect { try ES256PublicKey(pem: ec.pem) } throws: { mentions($0, "cannot read the public key") }
        #expect { try ES256PrivateKey(pem: rsa.pem) } throws: { mentions($0, "P-256") }
        #expect { try RS256PrivateKey(pem: ec.pem) } throws: { mentions($0, "2048") }
        #expect { try RS256PrivateKey(pem: shortKey.pem) } throws: { mentions($0, "2048") }
        #expect { try RS256PublicKey(pem: ec.publicKeyPEM) } throws: { mentions($0, "RS256") }
        #expect { try ES256PrivateKey(pem: otherCurve) } throws: { mentions($0, "P-256") }
    }

    /// libcrypto's default is to ask for the password at the terminal, which would hang a server at start.
    @Test("an encrypted key is refused without a question")
    func encryptedKey() {
        #expect { try ES256PrivateKey(pem: encryptedKeyPEM) } throws: { mentions($0, "unencrypted") }
    }

    private func mentions(_ error: any Error, _ text: String) -> Bool {
        guard let error = error as? CryptoError else { return false }
        return error.description.contains(text)
    }
}

/// A throw-away key on P-384.
private let otherCurve = """
    -----BEGIN PRIVATE KEY-----
    MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDAL0U93gGEUPke9g8TQ
    /Ea5q+4hOBBPpepIVLU0AWpjGhACSYB4vMU4RotA19Y7qZShZANiAATZFuf34mWD
    NQRtIFEebIyjYAUz3j81Hw4IChKied+QbaI1wuRgwbIRg3IXcRs3TCiGThowRnFb
    u6e0pJvO6DxHBf/owMGzkbVzSpWL0San5xKegYdeQGDMULkiBiAY6MA=
    -----END PRIVATE KEY-----
    """

/// A throw-away P-256 key under the password "secret".
private let encryptedKeyPEM = """
    -----BEGIN ENCRYPTED PRIVATE KEY-----
    MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgfTB32BQCcVAICCAAw
    DAYIKoZIhvcNAgkFADAdBglghkgBZQMEAQIEEGeklzsPb4UlR8CdpmBIRvYEgZDB
    os8+ZsYcana1KTXswbSN9q9DksDRprXilqVdyUR0NBxeS4679Z7GJw3fOiKh+tRd
    PcOxj5sJ/hJnp8xIMaJ2+sMpTYiAlvukRwx02PV8plgCCONqXRLNCfgkk1R0nsw8
    3f49ofUmsMbBU1qEp1p4o1qhoPfD5GFy0NePitFZiY4dqm4G0vHOZWgr80vmCmU=
    -----END ENCRYPTED PRIVATE KEY-----
    """
