import HubCore
import Testing

extension JSONValue {
    subscript(index: Int) -> JSONValue? {
        guard let values = arrayValue, values.indices.contains(index) else { return nil }
        return values[index]
    }

    /// The value at the end of a way through objects.
    func at(_ keys: String...) -> JSONValue? {
        keys.reduce(self) { $0?[$1] }
    }

    var count: Int? { arrayValue?.count }

    /// A number, whole or not.
    var number: Double? {
        if case .double(let value) = self { return value }
        return intValue.map(Double.init)
    }
}

/// A fact that later checks build on.
func required(_ value: JSONValue?, _ what: String) throws -> JSONValue {
    try #require(value, "\(what) is missing")
}
