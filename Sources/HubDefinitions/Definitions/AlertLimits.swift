/// Limits of one participant's visible pushes: a definition's `alerts`.
package struct AlertLimits: Sendable, Equatable {
    /// Visible pushes at once.
    package var burst: Int
    /// Time after which one more push is allowed.
    package var every: Duration
    /// Most visible pushes within 24 hours; 0 for no limit.
    package var perDay: Int

    /// Limits of a definition without `alerts`.
    package static let standard = AlertLimits(burst: 5, every: .seconds(10), perDay: 0)
    /// Largest `burst`.
    package static let burstMax = 1000
    /// Longest `every`.
    package static let everyMax = Duration.seconds(86_400)

    /// Limits as given; the parser checks the bounds.
    package init(burst: Int, every: Duration, perDay: Int) {
        self.burst = burst
        self.every = every
        self.perDay = perDay
    }
}
