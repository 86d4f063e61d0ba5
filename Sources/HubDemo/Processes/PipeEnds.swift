internal import Glibc

/// The two ends of a pipe, which no child process inherits. The owner closes them.
struct PipeEnds {
    let reading: Int32
    let writing: Int32

    /// Nil: the process has no descriptor left.
    init?(isBlocking: Bool) {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { return nil }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            if !isBlocking { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
        }
        reading = ends[0]
        writing = ends[1]
    }

    func close() {
        Glibc.close(reading)
        Glibc.close(writing)
    }
}
