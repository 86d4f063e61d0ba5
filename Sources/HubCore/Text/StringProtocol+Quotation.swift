extension StringProtocol {
    /// The beginning of what a peer sent, for an answer that quotes it. Counted in Unicode scalars: one character of Swift's may
    /// be a letter with a hundred thousand accents.
    package func quotable(_ scalarsMax: Int) -> String {
        String(String.UnicodeScalarView(unicodeScalars.prefix(scalarsMax)))
    }
}
