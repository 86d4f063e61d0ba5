import HubCore
import HubDelivery

/// A loop that is late: everything that comes to it is taken up later, in its order, and the book has to notice.
extension Simulation {
    /// Between two stalls of some loop at most, and how long one lasts, in milliseconds.
    private static let stallEvery: Int64 = 20_000
    private static let stallLength: (least: Int64, most: Int64) = (60, 1_900)

    func planStall() {
        if !isEnding { schedule(between(0, Self.stallEvery), .stall) }
    }

    func stall() {
        planStall()
        let loop = Int.random(in: 0..<Self.loops, using: &random)
        guard isUp, loopsState.stalls[loop] == nil else { return }
        loopsState.stalls[loop] = SimLoops.Stall(since: now)
        schedule(between(Self.stallLength.least, Self.stallLength.most), .resume(life: life, loop: loop))
    }

    /// The loop takes up everything that has come meanwhile.
    func resume(_ loop: Int) {
        guard let stall = loopsState.stalls[loop] else { return }
        loopsState.stalls[loop] = nil
        loopsState.resumedAt = now
        for action in stall.waiting { perform(action) }
    }

    /// Whether the action has to wait for its loop; then it is kept.
    func waits(_ action: Action) -> Bool {
        let loop: Int
        switch action {
        case .loop(_, _, .hear) where settings.broken == .dueBeforeLoops: return false
        case .publication(let life, let its, _) where life == self.life: loop = its
        case .loop(let life, let its, _) where life == self.life: loop = its
        case .receiptPing(let life, let its, _) where life == self.life: loop = its
        case .up(let index, let message) where connections[index].life == life:
            loop = connections[index].id.loop
            if isUp, loopsState.stalls[loop] != nil { noteWaiting(message, of: connections[index], index) }
        case .silence(let index) where connections[index].life == life, .lost(let index) where connections[index].life == life:
            loop = connections[index].id.loop
            if isUp, loopsState.stalls[loop] != nil { connections[index].endWaits = true }
        default: return false
        }
        guard isUp, loopsState.stalls[loop] != nil else { return false }
        loopsState.stalls[loop]?.waiting.append(action)
        return true
    }

    var isStalled: Bool { loopsState.stalls.contains { $0 != nil } }
}
