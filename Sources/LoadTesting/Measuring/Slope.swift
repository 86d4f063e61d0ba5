/// A straight line through a series by least squares: the growth of memory and its uncertainty.
package struct Slope: Sendable, Equatable {
    /// Units of the values per unit of the places.
    package var perUnit: Double
    /// The slope's standard error. Consecutive points are not independent, so it is rather too small.
    package var standardError: Double

    /// Nil for fewer than three points, or if all are at one place.
    package init?(_ points: [(place: Double, value: Double)]) {
        guard points.count >= 3 else { return nil }
        let count = Double(points.count)
        let meanPlace = points.reduce(0) { $0 + $1.place } / count
        let meanValue = points.reduce(0) { $0 + $1.value } / count
        let spread = points.reduce(0) { $0 + ($1.place - meanPlace) * ($1.place - meanPlace) }
        guard spread > 0 else { return nil }
        let slope = points.reduce(0) { $0 + ($1.place - meanPlace) * ($1.value - meanValue) } / spread
        let residue = points.reduce(0) {
            let off = $1.value - meanValue - slope * ($1.place - meanPlace)
            return $0 + off * off
        }
        perUnit = slope
        standardError = (residue / (count - 2) / spread).squareRoot()
    }
}
