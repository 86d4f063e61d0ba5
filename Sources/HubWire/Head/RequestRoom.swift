package import HubCore

/// Memory of requests that are answered, for the requests after them: a request like the one before takes none from the heap.
///
/// Confined to one thread at a time.
package struct RequestRoom {
    /// Bytes of the largest buffer that is kept.
    package static let bytesMax = 16_384

    private var query = HTTPQuery()
    private var body: [UInt8] = []
    /// Paths that came lately: nearly all publishes have one of few.
    private let paths = TextMemory(count: 8)

    /// Has no memory yet.
    package init() {}

    /// Takes the memory of a request that nobody needs any more, and leaves it empty. Copies of the request stay as they are.
    package mutating func takeBack(_ request: inout HTTPRequest) {
        if request.query.room <= Self.bytesMax {
            swap(&query, &request.query)
            query.removeAll()
        }
        if request.body.capacity <= Self.bytesMax {
            swap(&body, &request.body)
            body.removeAll(keepingCapacity: true)
        }
    }

    /// No parameters, and room for some.
    mutating func takeQuery() -> HTTPQuery {
        var taken = HTTPQuery()
        swap(&taken, &query)
        return taken
    }

    /// No bytes, and room for some.
    package mutating func takeBody() -> [UInt8] {
        var taken: [UInt8] = []
        swap(&taken, &body)
        return taken
    }

    /// A path that needs no decoding, as text.
    func path(of bytes: UnsafeRawBufferPointer) -> String { unsafe paths.text(of: bytes) }
}
