package import HubChannels
internal import Synchronization

/// Asks the channels' home loops, and combines their answers.
package struct ChannelSurvey: Sendable {
    /// Number of the loops that are asked.
    package let loopCount: Int
    /// Posts to any loop's engine, from any thread.
    private let post: @Sendable (_ loop: Int, EngineMessage) -> Void

    /// - Parameter post: posts to any loop's engine, from any thread.
    package init(loopCount: Int, post: @escaping @Sendable (_ loop: Int, EngineMessage) -> Void) {
        self.loopCount = loopCount
        self.post = post
    }

    /// Asks every loop the same question. `then` runs on the loop that answers last, with the answers in no particular order.
    package func ask<Answer: Sendable>(
        _ question: @escaping @Sendable (HomeRegistry) -> Answer, then: @escaping @Sendable ([Answer]) -> Void
    ) {
        let answers = Collected<Answer>()
        for loop in 0..<loopCount {
            post(
                loop,
                .query { [loopCount] home in
                    let answer = question(home)
                    let all = answers.values.withLock { values in
                        values.append(answer)
                        assert(values.count <= loopCount, "\(values.count) loops answered, and \(loopCount) were asked")
                        return values.count == loopCount ? values : nil
                    }
                    if let all { then(all) }
                })
        }
    }

    private final class Collected<Answer: Sendable>: Sendable {
        let values = Mutex<[Answer]>([])
    }
}
