/// The connections of one phone. Belongs to the relay's thread.
struct RelayLine {
    var pairs: [RelayPair] = []
    private(set) var mode = RelayMode.open

    /// Takes the mode over.
    mutating func enter(_ next: RelayMode) {
        guard next != mode else { return }
        if next == .silent {
            for index in pairs.indices { pairs[index].lose() }
        } else if mode == .silent {
            // The phone is back with another address. Its system resets the former connections, of which the hub hears nothing.
            for index in pairs.indices where pairs[index].isLost { pairs[index].resetApp() }
        }
        mode = next
    }

    /// Moves bytes where the mode allows it, and forgets what is over.
    mutating func turn() {
        var kept: [RelayPair] = []
        for var pair in pairs {
            let isOver = pair.isLost ? pair.app < 0 && pair.isGivenUp : mode == .open && !pair.move()
            if isOver { pair.close() } else { kept.append(pair) }
        }
        pairs = kept
    }

    /// Ends all connections that are not lost: a lost one does not reach the hub any more.
    mutating func end() {
        for index in pairs.indices {
            if pairs[index].isLost { pairs[index].resetApp() } else { pairs[index].close() }
        }
        pairs.removeAll { !$0.isLost }
    }

    /// Ends all connections at both sides.
    mutating func endAll() {
        for index in pairs.indices { pairs[index].close() }
        pairs = []
    }
}
