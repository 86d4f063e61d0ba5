/// The clock seam: nothing below the composition root reads the system's clocks itself.
///
/// The monotonic clock never jumps and measures time-outs. The wall clock stamps signatures, tokens and records, and an
/// operator may set it.
package protocol TimeSource: Sendable {
    /// Nanoseconds on a clock that only grows; its zero has no meaning.
    var monotonicNanoseconds: UInt64 { get }
    /// Milliseconds since 1970-01-01T00:00:00Z.
    var wallMilliseconds: Int64 { get }
}

extension TimeSource {
    /// Whole seconds since 1970-01-01T00:00:00Z.
    package var wallSeconds: Int64 { wallMilliseconds / 1000 }
}
