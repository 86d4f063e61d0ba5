package import HubCore
package import HubDelivery

/// Work that the flow asks its owner for. The method after the arrow takes the answer; an answer of nil says that the work failed.
extension PushFlow {
    /// One step of a round.
    package enum Step: Sendable {
        /// The channels of these events → `learned(channels:at:)`.
        case readChannels([String])
        /// The time zones of these pushes' devices → `learned(zones:at:)`.
        case readZones([PushRecord])
        /// The room on these lanes → `asked(rooms:at:)`.
        case askRooms([PushRoute])
        /// The waits of pushes whose people have come back (`Comebacks.wait`) → `asked(waits:at:)`.
        case askWaits([PushRecord])
        /// These devices, as far as sending needs them → `lookedUp(_:unread:at:)`.
        case lookUp([DeviceName])
        /// All devices of these users by app → `read(devices:at:)`.
        case readDevices(of: [String: [String]])
        /// The end of pushes, and others in their place → `redirected(_:at:)`.
        case redirect([Redirection], now: Int64)
        /// Places on the lanes, for pushes that are handed over next → `admitted(_:at:)`.
        case admit([PushCandidate])
        /// Time for others on the owner's thread → `paused(at:)`. Sorting a large event into its lanes takes a while.
        case pause
        /// The lease, durable → `leased(_:at:)`.
        case lease([PushRecord])
        /// Pushes for their gateways → `handedOver(at:)`. Their answers go to `answered(_:at:)`.
        case hand([Handover])
        /// Leased pushes that no gateway gets, to be stored as they are → `completed(_:at:)`.
        case complete([PushRecord])
        /// Pushes that wait or have ended without a lease, to be stored as they are → `written(_:at:)`.
        case write([PushRecord])
        /// Open pushes of the store, the soonest due first → `reloaded(_:at:)`.
        case reload(limit: Int)
    }

    /// One step of a settlement.
    package enum Settling: Sendable {
        /// Gateways' facts about tokens, to be stored → `noted(at:)`.
        case note([TokenNote])
        /// All devices of these users by app → `reread(devices:at:)`.
        case readDevices(of: [String: [String]])
        /// The end of pushes to dead tokens, and others in their place → `followed(_:at:)`.
        case redirect([Redirection], now: Int64)
        /// Pushes to be stored as they are → `settled(_:at:)`.
        case update([PushRecord])
    }

    /// A leased push on its way to a gateway.
    package struct Attempt: Sendable {
        package let push: PushRecord
        package let target: PushTarget
        /// Whether it is time to store that the gateway accepted this token.
        let isNoteDue: Bool
        /// `OutboxClock.shift` at the handover.
        let clockShift: Int64
    }

    package struct Handover: Sendable {
        package let message: PushMessage
        package let attempt: Attempt
    }

    /// A gateway's answer to an attempt.
    package struct Answer: Sendable {
        package let attempt: Attempt
        package let outcome: PushOutcome
        /// For how many milliseconds the push was kept back when it was to leave; nil: it left.
        package let keptBack: Int64?

        package init(_ attempt: Attempt, _ outcome: PushOutcome, keptBack: Int64? = nil) {
            self.attempt = attempt
            self.outcome = outcome
            self.keptBack = keptBack
        }
    }

    package enum TokenNote: Sendable, Equatable {
        /// - Parameter since: milliseconds since 1970; nil: the gateway gave no time.
        case dead(token: String, app: String, PushProvider, since: Int64?)
        case accepted(token: String, app: String, PushProvider, APNsEnvironment)
    }

    /// A fact for the log.
    package enum Note: Sendable, Equatable {
        case ended(nid: String, PushState, outcome: String?)
        case clockSet(ClockSteps.Step, waiting: Int)
        /// A device names a time zone that this machine does not know.
        case unknownZone(String, nid: String)
    }
}
