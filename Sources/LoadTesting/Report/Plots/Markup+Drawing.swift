/// The shapes of plots; coordinates in the units of the drawing's `viewBox`.
extension Markup {
    static func drawing(width: Double, height: Double, title: String, kind: String, _ shapes: [Markup]) -> Markup {
        .element(
            "svg",
            [
                "viewBox": "0 0 \(NumberText.coordinate(width)) \(NumberText.coordinate(height))", "role": "img", "aria-label": title,
                "class": kind,
            ], shapes)
    }

    static func line(from: (x: Double, y: Double), to: (x: Double, y: Double), kind: String) -> Markup {
        .element(
            "line",
            [
                "x1": NumberText.coordinate(from.x), "y1": NumberText.coordinate(from.y), "x2": NumberText.coordinate(to.x),
                "y2": NumberText.coordinate(to.y), "class": kind,
            ])
    }

    /// - Parameter anchor: the end of the text at `x`: start, middle or end.
    static func label(_ text: String, x: Double, y: Double, anchor: String, kind: String = "note") -> Markup {
        .leaf("text", ["x": NumberText.coordinate(x), "y": NumberText.coordinate(y), "text-anchor": anchor, "class": kind], text)
    }

    static func bar(x: Double, y: Double, width: Double, height: Double, kind: String) -> Markup {
        .element(
            "rect",
            [
                "x": NumberText.coordinate(x), "y": NumberText.coordinate(y), "width": NumberText.coordinate(width),
                "height": NumberText.coordinate(height), "rx": "2", "class": kind,
            ])
    }

    /// - Parameter corners: in SVG's form, `x,y x,y`.
    static func polyline(_ corners: String, title: String, kind: String) -> Markup {
        .element("polyline", ["points": corners, "class": kind], [.leaf("title", title)])
    }

    static func polygon(_ corners: String, kind: String) -> Markup {
        .element("polygon", ["points": corners, "class": kind])
    }
}
