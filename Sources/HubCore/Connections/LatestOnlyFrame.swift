/// A frame within a joined write that the next frame of the same line replaces: an event of a cache channel.
///
/// Only slow readers lose frames: their queue keeps the newest of each line.
package struct LatestOnlyFrame: Sendable, BitwiseCopyable {
    /// The offset of the frame's first byte in the joined bytes.
    package let start: Int
    /// The offset of the next frame.
    package let end: Int
    /// Frames with the same line replace each other. Never 0; valid within one loop only.
    package let line: UInt32

    /// A frame from `start` to `end`, which is not empty.
    package init(start: Int, end: Int, line: UInt32) {
        assert(start >= 0 && start < end && line != 0, "a frame of line \(line) from \(start) to \(end)")
        self.start = start
        self.end = end
        self.line = line
    }
}
