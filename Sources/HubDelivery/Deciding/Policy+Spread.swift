internal import HubCore
package import HubDefinitions

extension Policy {
    /// Most recipients of an event whose waits are not spread.
    package static let spreadRecipientsMin = 1000

    /// The wait of one of many recipients, shortened at random, so that neither pushes nor the returns they cause come all at once.
    ///
    /// Waits are only shortened, so that deadlines hold, and at most by half, so that receipts still have time. A wait of zero stays zero.
    /// - Parameters:
    ///   - recipients: number of the event's recipients.
    ///   - fraction: random, from 0 up to 1.
    package func spread(_ wait: Duration, recipients: Int, fraction: Double) -> Duration {
        guard recipients > Self.spreadRecipientsMin else { return wait }
        let width: Duration = self == .critical ? .milliseconds(500) : self == .notify ? .seconds(3) : .zero
        return wait - min(width, wait / 2) * fraction
    }
}
