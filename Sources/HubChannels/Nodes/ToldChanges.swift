package import HubCore

/// Comings and goings that one stream has told webhooks lately. Pure.
///
/// Redis cannot know what was told in a memory that it lost. A change may be lost with its announcement, and one that was told is
/// announced again. Nodes that read the stream do know, and tell no subject's coming or going twice in a row.
package struct ToldChanges {
    private struct Subject: Hashable {
        let place: MemberPlace
        /// Nil: the channel's occupancy.
        let user: ExactText?
    }

    private static let countMax = 100_000
    /// Five minutes, as long as webhooks wait for their receiver.
    private static let ageMax: Int64 = 300_000

    /// Whether the subject was told as there, and when.
    private var told = RecentTable<Subject, (isThere: Bool, at: Int64)>(countMax: Self.countMax, ageMax: Self.ageMax)

    /// Nothing was told.
    package init() {}

    /// Whether webhooks hear of the announcement.
    package mutating func isNews(_ announcement: Announcement) -> Bool {
        guard let place = announcement.place else { return false }
        let (user, isThere): (String?, Bool)
        switch announcement.event {
        case .added(let added, _): (user, isThere) = (added, true)
        case .removed(let removed): (user, isThere) = (removed, false)
        case .occupied: (user, isThere) = (nil, true)
        case .vacated: (user, isThere) = (nil, false)
        case .count, .info, .dead: return announcement.standing != .repeated
        }
        let subject = Subject(place: place, user: user.map(ExactText.init))
        let now = Int64(announcement.id.milliseconds)
        let wasThere = told[subject].flatMap { now - $0.at < Self.ageMax ? $0.isThere : nil }
        let isNews =
            switch announcement.standing {
            case .change: true
            case .repeated, .early: wasThere == !isThere
            case .confirmed, .late: wasThere != isThere
            }
        if isNews { told.set((isThere, now), for: subject, now: now) }
        return isNews
    }
}
