internal import HubCore

/// Users whose presence changed within a turn, and whether the other members know them.
struct PresenceChanges {
    /// In order.
    private var touched: [ExactText] = []
    private var wasTold: [ExactText: Bool] = [:]

    /// - Parameter isTold: whether the others know the user, now or at the end of the turn. Counts at the user's first change.
    mutating func touch(_ user: ExactText, isTold: Bool) {
        guard wasTold[user] == nil else { return }
        wasTold[user] = isTold
        touched.append(user)
    }

    /// Whether the others knew the user at the beginning of the turn; nil without a change of the user.
    func wasTold(_ user: ExactText) -> Bool? { wasTold[user] }

    /// Whether every user stands once.
    var isConsistent: Bool { touched.count == wasTold.count }

    /// Net changes since the last call.
    /// - Parameter member: a present member's info.
    mutating func take(_ member: (ExactText) -> (isPresent: Bool, info: [UInt8]?)) -> Presence.Edges {
        var edges = Presence.Edges()
        for id in touched {
            let (isPresent, info) = member(id)
            if isPresent, wasTold[id] == false { edges.added.append((id.text, info)) }
            if !isPresent, wasTold[id] == true { edges.removed.append(id.text) }
        }
        touched.removeAll()
        wasTold.removeAll()
        return edges
    }
}
