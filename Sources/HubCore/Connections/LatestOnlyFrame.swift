/// A frame within a joined write that loses its meaning with the next one of its line: an event of a cache channel.
///
/// Only for whoever does not keep up: of what waits for them, the newest of each line is enough.
package struct LatestOnlyFrame: Sendable, BitwiseCopyable {
    /// Where the frame begins in the joined bytes, and where the next one does.
    package let start: Int
    package let end: Int
    /// Frames with the same line replace each other. Never 0; means something within one loop only.
    package let line: UInt32

    package init(start: Int, end: Int, line: UInt32) {
        self.start = start
        self.end = end
        self.line = line
    }
}
