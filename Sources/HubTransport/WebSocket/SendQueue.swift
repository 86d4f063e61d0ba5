internal import HubCore

/// The unsent frames of one slow connection, in order: references to shared batches, bounded in bytes and items.
///
/// The rest of a frame that the kernel took only in part is sent first. With TLS libwebsockets keeps the rest of a
/// whole write. A queue exists only while its connection is behind.
struct SendQueue {
    /// A run of a batch's frames.
    struct Piece {
        let batch: Batch
        var start: Int
        let end: Int
        /// The line of a `LatestOnlyFrame`; 0: never replaced.
        let line: UInt32
        /// The one list that may exceed the bound.
        var isList = false
    }

    /// Nil where a newer frame of the same line, further back, has replaced the piece.
    private var pieces: [Piece?] = []
    private var head = 0
    private var replaced = 0
    /// Indexes into `pieces` of the waiting frame of each line.
    private var newest: [UInt32: Int] = [:]
    /// Bytes of the pieces that wait here.
    private(set) var queuedBytes = 0
    /// Bytes among these of a list that may exceed the bound.
    private var listBytes = 0
    /// The rest of a frame that the kernel took in part; sent before everything else.
    var held: [UInt8] = []
    /// With TLS: most bytes of an earlier write that libwebsockets may still hold.
    var libraryBytes = 0

    /// Most waiting pieces, whatever their size, because the entries themselves take memory.
    static let piecesMax = 8192
    /// Bytes of memory per waiting piece, besides its content, roughly.
    static let pieceBytes = 64

    var isEmpty: Bool { waitingCount == 0 }
    /// Whether nothing waits, here or in the library.
    var isSpent: Bool { isEmpty && heldBytes == 0 }
    private var heldBytes: Int { held.count + libraryBytes }
    /// Bytes of memory, besides the shared batches.
    var ownBytes: Int { waitingCount * Self.pieceBytes + heldBytes }
    /// Unsent bytes of the connection.
    var bytesBehind: Int { queuedBytes + heldBytes }

    private var waitingCount: Int { pieces.count - head - replaced }

    /// Adds a batch from `start` on, the beginning of one of its frames. Replaced frames are removed.
    /// - Parameter isList: one frame, which does not count against the bound unless another such frame waits.
    /// - Returns: false if the bounds are exceeded; the caller closes the connection with 4100 and drops the queue.
    mutating func append(_ batch: Batch, from start: Int = 0, queuedBytesMax: Int, isList: Bool = false) -> Bool {
        let count = unsafe batch.bytes.count
        assert(start >= 0 && start <= count, "a batch of \(count) bytes waits from \(start) on")
        if isList, listBytes == 0, waitingCount < Self.piecesMax {
            push(Piece(batch: batch, start: start, end: count, line: 0, isList: true))
            return true
        }
        let queuedBytesMax = queuedBytesMax + listBytes
        if batch.latestOnly.isEmpty {
            guard queuedBytes + count - start <= queuedBytesMax, waitingCount < Self.piecesMax else { return false }
            push(Piece(batch: batch, start: start, end: count, line: 0))
            return true
        }
        var position = start
        for frame in batch.latestOnly where frame.start >= start {
            assert(frame.start >= position && frame.end <= count, "a frame from \(frame.start) to \(frame.end) follows byte \(position)")
            if frame.start > position { push(Piece(batch: batch, start: position, end: frame.start, line: 0)) }
            if let older = newest[frame.line], let piece = pieces[older] {
                queuedBytes -= piece.end - piece.start
                pieces[older] = nil
                replaced += 1
            }
            newest[frame.line] = pieces.count
            push(Piece(batch: batch, start: frame.start, end: frame.end, line: frame.line))
            position = frame.end
        }
        if position < count { push(Piece(batch: batch, start: position, end: count, line: 0)) }
        tidy()
        assert(isConsistent, "\(pieces.count) pieces from \(head) on, \(replaced) replaced, \(queuedBytes) bytes")
        return queuedBytes <= queuedBytesMax && waitingCount <= Self.piecesMax
    }

    /// Takes the next piece.
    mutating func popFirst() -> Piece? {
        while head < pieces.count {
            let piece = pieces[head]
            pieces[head] = nil
            head += 1
            guard let piece else {
                replaced -= 1
                continue
            }
            queuedBytes -= piece.end - piece.start
            if piece.isList { listBytes = 0 }
            if piece.line != 0 { newest[piece.line] = nil }
            tidy()
            assert(isConsistent, "\(pieces.count) pieces from \(head) on, \(replaced) replaced, \(queuedBytes) bytes")
            return piece
        }
        return nil
    }

    /// Puts back the unsent rest of the piece taken last.
    mutating func putBack(_ piece: Piece) {
        assert(piece.start < piece.end, "nothing of the piece from \(piece.start) to \(piece.end) is left to put back")
        assert(piece.line == 0 || newest[piece.line] == nil, "a newer frame of line \(piece.line) waits behind the one put back")
        if head > 0 {
            head -= 1
        } else {
            pieces.insert(nil, at: 0)
            for (line, index) in newest { newest[line] = index + 1 }
        }
        pieces[head] = piece
        queuedBytes += piece.end - piece.start
        if piece.isList { listBytes = piece.end - piece.start }
        if piece.line != 0 { newest[piece.line] = head }
        assert(isConsistent, "\(pieces.count) pieces from \(head) on, \(replaced) replaced, \(queuedBytes) bytes")
    }

    /// Whether the counts are those of the pieces. Compares the pieces of short queues only, so that long ones cost linear time in all.
    private var isConsistent: Bool {
        guard head >= 0, head <= pieces.count, replaced >= 0, replaced <= pieces.count - head else { return false }
        guard queuedBytes >= 0, listBytes >= 0, listBytes <= queuedBytes, newest.count <= waitingCount else { return false }
        if pieces.count > 64 { return true }
        let waiting = pieces[head...].compactMap { $0 }
        return waiting.count == waitingCount && pieces[..<head].allSatisfy { $0 == nil }
            && waiting.reduce(0) { $0 + $1.end - $1.start } == queuedBytes
            && waiting.filter(\.isList).reduce(0) { $0 + $1.end - $1.start } == listBytes
            && waiting.count { $0.line != 0 } == newest.count && newest.allSatisfy { pieces[$0.value]?.line == $0.key }
    }

    private mutating func push(_ piece: Piece) {
        pieces.append(piece)
        queuedBytes += piece.end - piece.start
        if piece.isList { listBytes = piece.end - piece.start }
    }

    /// Moves the rest down only when half of the array is spent, so that a drain costs linear time in all.
    private mutating func tidy() {
        guard (head + replaced) * 2 > pieces.count else { return }
        if replaced == 0 {
            pieces.removeFirst(head)
        } else {
            pieces.removeAll { $0 == nil }
            replaced = 0
        }
        head = 0
        if newest.isEmpty { return }
        for (index, piece) in pieces.enumerated() {
            if let line = piece?.line, line != 0 { newest[line] = index }
        }
    }
}
