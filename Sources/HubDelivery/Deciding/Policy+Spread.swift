internal import HubCore

extension Policy {
    /// Events to more recipients than this are spread.
    package static let spreadRecipientsMin = 1000

    /// The wait of one of many recipients, shortened by a part of its own, so that a big audience's pushes, and the returns that
    /// they cause, do not come in one moment.
    ///
    /// Taken out of the wait and never added, so that deadlines hold; at most half of it, so that receipts still have time to
    /// come. What is due at once stays so.
    /// - Parameters:
    ///   - recipients: of the event.
    ///   - fraction: 0 up to 1, by chance.
    package func spread(_ wait: Duration, recipients: Int, fraction: Double) -> Duration {
        guard recipients > Self.spreadRecipientsMin else { return wait }
        let width: Duration = self == .critical ? .milliseconds(500) : self == .notify ? .seconds(3) : .zero
        return wait - min(width, wait / 2) * fraction
    }
}
