import Foundation
/// Settings of a run about members. The same settings give the same run, step by step.
package struct MemberSettings: Sendable {
    /// Everything that happens follows from it.
    package var seed: UInt64
    /// Times that a member's last connection goes.
    package var departures: Int
    package var nodes = 3
    /// Presence channels. The first one has more than a hundred users, so that its leavers linger.
    package var channels = 6
    package var usersPerChannel = 16
    package var usersOfFirst = 120
    /// Between two faults, on average, in milliseconds; 0: none.
    package var faultInterval: Int64 = 40_000
    /// A rule that is broken on purpose, to see it caught.
    package var broken: MemberRule?

    package init(seed: UInt64, departures: Int) {
        self.seed = seed
        self.departures = departures
    }
}

/// Rules about members that the simulation can break in how it drives the parts, or in the scripts.
package enum MemberRule: String, CaseIterable, Sendable {
    /// The scripts count joins and leaves, in place of entries that are there or not.
    case counting
    /// Each node that sweeps a dead one ends its members.
    case sweepTwice = "sweep-twice"
    /// Members of a dead node are told removed at once.
    case removedAtOnce = "removed-at-once"
    /// In a new memory, the last entry of a member is the last one, although not every node has written yet.
    case lastIsLast = "last-is-last"
    /// Ends of what a lost memory had are never told.
    case endsForgotten = "ends-forgotten"
    /// A node forgets a leaver once it has heard of the end itself.
    case heardIsOver = "heard-is-over"
    /// A node that begins does not read what was told in the seconds before.
    case startsAtEnd = "starts-at-end"
    /// Webhooks hear each announcement, told before or not.
    case toldAgain = "told-again"
    /// Nodes do not say whom a new memory lacks.
    case missedUnsaid = "missed-unsaid"
    /// Nodes do not say whom a new memory takes for somebody new.
    case knownUnsaid = "known-unsaid"

    /// A script with the rule broken.
    func edit(_ body: String) -> String {
        func replaced(_ part: String, by other: String) -> String { body.replacingOccurrences(of: part, with: other) }
        return switch self {
        case .counting:
            replaced("if redis.call('HSET', base .. 'on:' .. place, user .. '\\0' .. ARGV[2], '') == 1 then", by: "if true then")
        case .sweepTwice: replaced("user .. '\\0' .. node) == 0 then return end", by: "user .. '\\0' .. node) == 2 then return end")
        case .removedAtOnce: replaced("+ tonumber(ARGV[6])", by: "")
        case .lastIsLast: replaced("return left > 0 and now() + left or 0", by: "return 0")
        case .endsForgotten:
            replaced(
                "local function tellLost(kind, place, user)", by: "local function tellLost() end local function unused(kind, place, user)")
        case .heardIsOver, .startsAtEnd, .toldAgain, .missedUnsaid, .knownUnsaid: body
        }
    }
}
