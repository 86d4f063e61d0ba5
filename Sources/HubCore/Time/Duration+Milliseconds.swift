extension Duration {
    /// Whole milliseconds, rounded towards zero.
    package var milliseconds: Int64 {
        // The two are made by a division each time.
        let (seconds, attoseconds) = components
        return seconds * 1000 + attoseconds / 1_000_000_000_000_000
    }
}
