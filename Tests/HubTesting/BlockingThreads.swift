import Foundation

/// Threads of their own for tests that block in system calls: a fixed number, so that they do not crowd each other's time limits. The
/// pool that all tasks share has a thread for each core and no more; who waits there for a socket keeps all others waiting.
package final class BlockingThreads: TaskExecutor, @unchecked Sendable {
    /// Two for each core: those who wait for a socket or for time to pass leave theirs to others.
    package static let shared = BlockingThreads(count: max(8, 2 * ProcessInfo.processInfo.activeProcessorCount))

    // Guard: `condition` is held around every use of `jobs`.
    private let condition = NSCondition()
    private var jobs: [UnownedJob] = []

    private init(count: Int) {
        for _ in 0..<count { Thread.detachNewThread { [self] in run() } }
    }

    /// From any thread; the job runs on whichever of these is free first, in the order of coming.
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        condition.lock()
        jobs.append(job)
        condition.signal()
        condition.unlock()
    }

    private func run() -> Never {
        while true {
            condition.lock()
            while jobs.isEmpty { condition.wait() }
            let job = jobs.removeFirst()
            condition.unlock()
            job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }
}
