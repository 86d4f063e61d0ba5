/// Frames that some slow connections still have to get: one copy, shared by all of them.
///
/// Made only when the first of a channel's subscribers cannot take a write at once; whoever keeps up never causes one.
/// Belongs to one loop. Freed with its last reference.
@safe final class Batch {
    let bytes: UnsafeRawBufferPointer

    /// Copies `bytes`, which belong to the caller and are reused after the turn.
    init(copying bytes: UnsafeRawBufferPointer) {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 16)
        unsafe copy.copyMemory(from: bytes)
        unsafe self.bytes = UnsafeRawBufferPointer(copy)
    }

    deinit {
        unsafe bytes.deallocate()
    }
}
