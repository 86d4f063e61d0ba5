import Foundation

/// Runs long or blocking work on a thread of its own. The pool shared by all tests has one thread per core, so such work would delay the
/// rest.
package func onOwnThread<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        let thread = Thread { continuation.resume(with: Result { try work() }) }
        // The size of a main thread's stack, for deeply nested inputs.
        thread.stackSize = 8 << 20
        thread.start()
    }
}
