/// Calls that wait for a place inside libcurl. Removals do not move the rest every time. Only the loop's thread uses it.
struct CallQueue {
    private var calls: [CurlInbox.Waiting?] = []
    private var head = 0

    var count: Int { calls.count - head }
    var first: CurlInbox.Waiting? { head < calls.count ? calls[head] : nil }

    mutating func append(_ call: CurlInbox.Waiting) { calls.append(call) }

    mutating func popFirst() -> CurlInbox.Waiting? {
        guard head < calls.count else { return nil }
        defer {
            calls[head] = nil
            head += 1
            // Half of the array is used up: moving the rest now costs one move per call on average.
            if head * 2 >= calls.count {
                calls.removeFirst(head)
                head = 0
            }
        }
        return calls[head]
    }
}
