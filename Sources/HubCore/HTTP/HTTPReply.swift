/// Names one HTTP exchange that is answered later. Valid on any thread; answering an ended exchange does nothing.
package struct HTTPReply: Sendable, Hashable {
    /// Index of the loop that answers.
    package let loop: Int
    /// Index of the connection on its loop.
    package let exchange: Int
    /// Distinguishes the requests of one index.
    package let serial: UInt64

    /// Names the request of that number on a connection of the loop.
    package init(loop: Int, exchange: Int, serial: UInt64) {
        (self.loop, self.exchange, self.serial) = (loop, exchange, serial)
    }
}
