internal import Glibc

/// Owned file descriptors, each of which is closed once.
enum Descriptor {
    /// Closes a descriptor of the caller's.
    ///
    /// Stops the program when the number is open no more. The kernel may have given the number to another connection meanwhile, and the
    /// next mistake would close that one.
    static func close(_ descriptor: Int32) {
        let code = Glibc.close(descriptor)
        precondition(code == 0 || errno != EBADF, "descriptor \(descriptor) was closed already")
    }
}
