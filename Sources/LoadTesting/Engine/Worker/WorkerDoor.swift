internal import CLoadSockets
internal import Foundation
internal import Glibc
internal import Synchronization

/// The only access to a worker from other threads: work is appended under a lock, and a bell wakes the worker.
final class WorkerDoor: Sendable {
    typealias Work = @Sendable (Worker) -> Void

    let bell: Int32
    private let waiting = Mutex<[Work]>([])

    init() {
        bell = tandem_load_bell_create()
        precondition(bell >= 0, "no descriptor is left for a worker")
    }

    deinit { Glibc.close(bell) }

    /// Runs on the worker's thread, in the order of posting.
    func post(_ work: @escaping Work) {
        waiting.withLock { $0.append(work) }
        tandem_load_bell_ring(bell)
    }

    /// Runs a question on the worker's thread and waits for the answer. Never call it on a worker's thread.
    func ask<Answer: Sendable>(_ question: @escaping @Sendable (Worker) -> Answer) -> Answer {
        let box = AnswerBox<Answer>()
        post { worker in
            box.answer.withLock { $0 = question(worker) }
            box.given.signal()
        }
        box.given.wait()
        guard let answer = box.answer.withLock({ $0 }) else { preconditionFailure("a worker answered without an answer") }
        return answer
    }

    func take() -> [Work] {
        tandem_load_silence(bell)
        return waiting.withLock { work in
            let taken = work
            work.removeAll(keepingCapacity: true)
            return taken
        }
    }
}

private final class AnswerBox<Answer: Sendable>: Sendable {
    let answer = Mutex<Answer?>(nil)
    let given = DispatchSemaphore(value: 0)
}
