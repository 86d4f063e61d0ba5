extension StringProtocol {
    /// The first `scalarsMax` Unicode scalars of a peer's text, for quoting it in an answer. Scalars, because one Swift
    /// `Character` may carry a hundred thousand accents.
    package func quotable(_ scalarsMax: Int) -> String {
        String(String.UnicodeScalarView(unicodeScalars.prefix(scalarsMax)))
    }
}
