import Foundation
import FoundationXML

/// A page read as XML, so that every element is closed, every attribute is quoted and every character is allowed.
struct Outline {
    private let document: XMLDocument

    init(_ html: String) throws {
        document = try XMLDocument(xmlString: html)
    }

    /// The texts of the elements with one name, or the values of the attributes with one name: `h1`, `@aria-label`.
    func texts(of name: String) throws -> [String] {
        try document.nodes(forXPath: "//\(name)").map { $0.stringValue ?? "" }
    }

    /// The names of all attributes.
    func attributes() throws -> [String] {
        try document.nodes(forXPath: "//@*").compactMap(\.name)
    }

    /// The cells of each table's rows.
    func rows() throws -> [[String]] {
        try document.nodes(forXPath: "//tr").map { ($0.children ?? []).map { $0.stringValue ?? "" } }
    }
}
