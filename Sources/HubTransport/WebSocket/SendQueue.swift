internal import HubCore

/// What one slow connection still has to be sent, in order: references to shared batches, bounded in bytes and items.
///
/// The rest of the one frame that the kernel took only in part goes first (through TLS libwebsockets keeps that, of a whole write). Exists
/// only while a connection is behind.
struct SendQueue {
    /// A run of a batch's frames.
    struct Piece {
        let batch: Batch
        var start: Int
        let end: Int
        /// Of a `LatestOnlyFrame`; 0: stays whatever follows.
        let line: UInt32
        /// The one list that may be longer than the bound.
        var isList = false
    }

    /// Nil: a newer frame of its line has taken its place, further back.
    private var pieces: [Piece?] = []
    private var head = 0
    private var replaced = 0
    /// Where the waiting frame of each line stands in `pieces`.
    private var newest: [UInt32: Int] = [:]
    /// Bytes of the pieces that wait here.
    private(set) var queuedBytes = 0
    /// Bytes among these of a list that may be longer than the bound.
    private var listBytes = 0
    /// The rest of a frame that the kernel took in part; it goes before everything else.
    var held: [UInt8] = []
    /// Through TLS: at most so many bytes of an earlier write are libwebsockets' to send.
    var libraryBytes = 0

    /// A connection with this many pieces waiting is slow whatever their size: the entries themselves are memory.
    static let piecesMax = 8192
    /// What a waiting piece takes beside its bytes, roughly.
    static let pieceBytes = 64

    var isEmpty: Bool { waitingCount == 0 }
    /// Nothing waits, here or in the library.
    var isSpent: Bool { isEmpty && heldBytes == 0 }
    private var heldBytes: Int { held.count + libraryBytes }
    /// Memory of its own, beside the batches it shares.
    var ownBytes: Int { waitingCount * Self.pieceBytes + heldBytes }
    /// How far behind its connection is.
    var bytesBehind: Int { queuedBytes + heldBytes }

    private var waitingCount: Int { pieces.count - head - replaced }

    /// Adds a batch from `start` on, which is where one of its frames begins. What it makes needless goes.
    /// - Parameter isList: one frame, which does not count against the bound as long as no other such waits.
    /// - Returns: false: the bounds are exceeded, and the connection has to go (close code 4100), and the queue with it.
    mutating func append(_ batch: Batch, from start: Int = 0, queuedBytesMax: Int, isList: Bool = false) -> Bool {
        let count = unsafe batch.bytes.count
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
        return queuedBytes <= queuedBytesMax && waitingCount <= Self.piecesMax
    }

    /// Takes out what is next.
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
            return piece
        }
        return nil
    }

    /// Puts back what could not be sent of the piece taken out last.
    mutating func putBack(_ piece: Piece) {
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
