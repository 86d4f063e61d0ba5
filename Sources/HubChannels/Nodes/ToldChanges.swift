internal import HubCore

/// Comings and goings that one stream has told webhooks lately. Pure.
///
/// Redis cannot know what was told in a memory that it lost. A change may be lost with its announcement, and one that was told is
/// announced again. Nodes that read the stream do know, and tell no subject's coming or going twice in a row.
struct ToldChanges {
    private struct Subject: Hashable {
        let place: MemberPlace
        /// Nil: the channel's occupancy.
        let user: ExactText?
    }

    private static let countMax = 100_000
    /// Five minutes, as long as webhooks wait for their receiver.
    private static let ageMax: Int64 = 300_000

    /// Whether the subject was told as there.
    private var told = RecentTable<Subject, Bool>(countMax: Self.countMax, ageMax: Self.ageMax)

    /// Whether webhooks hear of the announcement.
    mutating func isNews(_ announcement: Announcement) -> Bool {
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
        let isNews =
            switch announcement.standing {
            case .change: true
            case .repeated: told[subject] == !isThere
            case .confirmed, .late: told[subject] != isThere
            }
        if isNews { told.set(isThere, for: subject, now: Int64(announcement.id.milliseconds)) }
        return isNews
    }
}
