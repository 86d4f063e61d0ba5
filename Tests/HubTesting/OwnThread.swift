import Foundation

/// Runs what computes for long, or blocks, on a thread of its own: the pool that all tests share has a thread for each core and no
/// more, and whoever waits there for an answer would wait for this.
package func onOwnThread<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        let thread = Thread { continuation.resume(with: Result { try work() }) }
        // A main thread's, which deeply nested inputs need.
        thread.stackSize = 8 << 20
        thread.start()
    }
}
