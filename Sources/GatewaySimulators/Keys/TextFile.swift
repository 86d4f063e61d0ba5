import Glibc

/// Small text files, read and replaced as a whole.
enum TextFile {
    static let bytesMax = 256 * 1024

    /// Nil if the file does not exist.
    static func read(_ path: String) throws(GatewayError) -> String? {
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            if errno == ENOENT { return nil }
            throw failure("cannot read \(path)", "make it readable, or choose another folder with --data")
        }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: bytesMax)
        var count = 0
        while count < bytes.count {
            let part = unsafe bytes.withUnsafeMutableBytes {
                unsafe Glibc.read(file, $0.baseAddress?.advanced(by: count), $0.count - count)
            }
            guard part >= 0 else { throw failure("cannot read \(path)", "remove it, and it will be written anew") }
            if part == 0 { break }
            count += part
        }
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }

    /// Writes a second file and renames it, so that a reader never sees half of it. Only its owner may read it.
    static func write(_ text: String, to path: String) throws(GatewayError) {
        let temporary = path + ".new"
        let advice = "make the folder writable, or choose another with --data"
        let file = unsafe open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw failure("cannot write \(path)", advice) }
        let bytes = Array(text.utf8)
        var count = 0
        while count < bytes.count {
            let part = unsafe bytes.withUnsafeBytes {
                unsafe Glibc.write(file, $0.baseAddress?.advanced(by: count), $0.count - count)
            }
            guard part > 0 else {
                let error = failure("cannot write \(path)", advice)
                close(file)
                throw error
            }
            count += part
        }
        close(file)
        guard unsafe rename(temporary, path) == 0 else { throw failure("cannot write \(path)", advice) }
    }

    /// Creates the folder and its parents, and returns its absolute path.
    static func makeFolder(_ path: String) throws(GatewayError) -> String {
        let advice = "choose another folder with --data"
        var made = path.hasPrefix("/") ? "" : "."
        for part in path.split(separator: "/") {
            made += "/\(part)"
            if unsafe mkdir(made, 0o700) != 0, errno != EEXIST { throw failure("cannot make the folder \(path)", advice) }
        }
        guard let resolved = unsafe realpath(made, nil) else { throw failure("cannot make the folder \(path)", advice) }
        defer { unsafe free(resolved) }
        guard unsafe access(made, W_OK | X_OK) == 0 else { throw failure("cannot write into the folder \(path)", advice) }
        return unsafe String(cString: resolved)
    }

    /// The names in the folder.
    static func names(in folder: String) -> [String] {
        guard let listing = unsafe opendir(folder) else { return [] }
        defer { unsafe closedir(listing) }
        var names: [String] = []
        while let entry = unsafe readdir(listing) {
            names.append(
                unsafe withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                    unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
                })
        }
        return names.sorted()
    }

    private static func failure(_ what: String, _ advice: String) -> GatewayError {
        GatewayError("\(what): \(unsafe String(cString: strerror(errno))); \(advice)")
    }
}
