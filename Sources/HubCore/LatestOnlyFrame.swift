/// A frame within a joined write that the next frame of the same line replaces: an event of a cache channel.
///
/// Only slow readers lose frames: their queue keeps the newest of each line.
package struct LatestOnlyFrame: Sendable, BitwiseCopyable {
    /// Offsets in the joined bytes: the first byte of this frame, and of the next.
    package let start: Int
    package let end: Int
    /// Frames with the same line replace each other. Never 0; valid within one loop only.
    package let line: UInt32

    package init(start: Int, end: Int, line: UInt32) {
        self.start = start
        self.end = end
        self.line = line
    }
}
