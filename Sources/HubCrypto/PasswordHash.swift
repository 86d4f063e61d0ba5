import COpenSSL

/// A password's hash by scrypt (RFC 7914), with its salt and cost: `scrypt.15.8.3.SALT.DIGEST`, the last two in Base64URL.
///
/// The text holds no character that a shell, YAML or Compose would read as its own.
package struct PasswordHash: Sendable, Equatable {
    /// Binary logarithm of scrypt's N.
    private let cost: UInt64
    private let blockSize: UInt64
    private let parallelism: UInt64
    private let salt: [UInt8]
    private let digest: [UInt8]

    private static let name = "scrypt"
    private static let digestBytes = 32
    private static let saltBytes = 16
    /// Bounds on a written hash, because one check takes 128 bytes times N times the block size.
    private static let (costs, blockSizes, parallelisms) = (UInt64(14)...17, UInt64(8)...8, UInt64(1)...4)

    /// Least length of a password, in characters.
    package static let charactersMin = 8
    /// Greatest length of a password, in bytes.
    package static let bytesMax = 1024

    /// Hashes a password. Takes about 0.2 s of a core and 32 MiB.
    /// - Parameter salt: random, unless several processes need the same hash of one password.
    package init(of password: String, salt: [UInt8] = SecureRandom.bytes(PasswordHash.saltBytes)) {
        precondition(salt.count >= Self.saltBytes, "a salt of \(salt.count) bytes")
        (cost, blockSize, parallelism) = (15, 8, 3)
        self.salt = salt
        digest = Self.derive(password, salt: salt, cost: cost, blockSize: blockSize, parallelism: parallelism) ?? []
        precondition(digest.count == Self.digestBytes, "libcrypto has no scrypt")
    }

    /// Reads a hash's text; nil for any other text, and for a cost out of bounds.
    package init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 6, parts[0] == Self.name, let cost = UInt64(parts[1]), let blockSize = UInt64(parts[2]),
            let parallelism = UInt64(parts[3]), Self.costs.contains(cost), Self.blockSizes.contains(blockSize),
            Self.parallelisms.contains(parallelism), let salt = Base64URL.decode(parts[4]), let digest = Base64URL.decode(parts[5]),
            (Self.saltBytes...64).contains(salt.count), digest.count == Self.digestBytes
        else { return nil }
        (self.cost, self.blockSize, self.parallelism) = (cost, blockSize, parallelism)
        (self.salt, self.digest) = (salt, digest)
    }

    /// The hash as it is written down.
    package var text: String {
        "\(Self.name).\(cost).\(blockSize).\(parallelism).\(Base64URL.encode(salt)).\(Base64URL.encode(digest))"
    }

    /// Whether it is the password's hash. Takes as long as hashing, so never call it on a loop's thread or in a task.
    package func matches(_ password: String) -> Bool {
        let found = Self.derive(password, salt: salt, cost: cost, blockSize: blockSize, parallelism: parallelism)
        return found.map { constantTimeEquals($0, digest) } ?? false
    }

    /// Nil if the password is too long, or libcrypto has no memory for it.
    private static func derive(_ password: String, salt: [UInt8], cost: UInt64, blockSize: UInt64, parallelism: UInt64) -> [UInt8]? {
        var output = [UInt8](repeating: 0, count: digestBytes)
        let bytes = password.utf8.map { CChar(bitPattern: $0) }
        guard bytes.count <= bytesMax else { return nil }
        let memoryMax = (UInt64(128) << cost) * blockSize + 1024 * blockSize * parallelism + (1 << 20)
        let status = unsafe EVP_PBE_scrypt(
            bytes, bytes.count, salt, salt.count, 1 << cost, blockSize, parallelism, memoryMax, &output, output.count)
        if status != 1 { ERR_clear_error() }
        return status == 1 ? output : nil
    }
}
