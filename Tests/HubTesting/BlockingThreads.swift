import Foundation

/// Separate threads for tests that block in system calls, a fixed number so that they do not exhaust each other's time limits. The pool
/// shared by all tasks has one thread per core, so a blocking task would stop the rest.
package final class BlockingThreads: TaskExecutor, @unchecked Sendable {
    /// Two per core, because blocked threads leave the cores to the rest.
    package static let shared = BlockingThreads(count: max(8, 2 * ProcessInfo.processInfo.activeProcessorCount))

    // Guard: `condition` is held around every use of `jobs`.
    private let condition = NSCondition()
    private var jobs: [UnownedJob] = []

    private init(count: Int) {
        for _ in 0..<count { Thread.detachNewThread { [self] in run() } }
    }

    /// Callable from any thread. The first free thread runs the job, in the order of arrival.
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
