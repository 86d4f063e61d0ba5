import HubCore
import HubDelivery

/// A loop that is late: what comes to it is taken up later, in its order, and the delivery task has to know.
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
        guard isUp, server.stalls[loop] == nil else { return }
        server.stalls[loop] = Server.Stall(since: now)
        schedule(between(Self.stallLength.least, Self.stallLength.most), .resume(life: life, loop: loop))
    }

    /// The loop takes up what has come meanwhile.
    func resume(_ loop: Int) {
        guard let stall = server.stalls[loop] else { return }
        server.stalls[loop] = nil
        server.escalation.hubWasLate(from: stall.since, until: now)
        for action in stall.waiting { perform(action) }
        // It answers the delivery task, which may have something due.
        if server.committing == nil { turn() }
    }

    /// Whether the action has to wait for its loop; then it is kept.
    func waits(_ action: Action) -> Bool {
        let loop: Int
        switch action {
        case .publication(let life, let its, _, _) where life == self.life: loop = its
        case .probe(let life, let its, _) where life == self.life: loop = its
        case .up(let index, let message) where connections[index].life == life:
            loop = connections[index].id.loop
            if isUp, server.stalls[loop] != nil { noteWaiting(message, of: connections[index], index) }
        case .silence(let index) where connections[index].life == life, .lost(let index) where connections[index].life == life:
            loop = connections[index].id.loop
        default: return false
        }
        guard isUp, server.stalls[loop] != nil else { return false }
        server.stalls[loop]?.waiting.append(action)
        return true
    }

    var isStalled: Bool { server.stalls.contains { $0 != nil } }

    /// Up to when everything that came to the loops was heard: they answer at once, unless one of them is late.
    var heardUpTo: Int64 { isStalled && settings.broken != .dueBeforeLoops ? server.heardAt : now }
}

extension Server {
    /// A loop's long turn.
    struct Stall {
        let since: Int64
        var waiting: [Simulation.Action] = []
    }
}
