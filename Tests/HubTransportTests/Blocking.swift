import HubTesting
import Testing

/// Runs each test of a suite on `BlockingThreads`: its client's sockets and its waits block.
struct BlockingTrait: TestTrait, SuiteTrait, TestScoping {
    let isRecursive = true

    func provideScope(for test: Test, testCase: Test.Case?, performing body: @concurrent @Sendable () async throws -> Void) async throws {
        try await withTaskExecutorPreference(BlockingThreads.shared) { try await body() }
    }
}

extension Trait where Self == BlockingTrait {
    /// For tests that block the thread they run on.
    static var blocking: Self { Self() }
}
