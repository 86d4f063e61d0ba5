/// The decoded parameters of a request in the order received: all bytes in one piece, and where each parameter stands in it.
///
/// A publish has five, which are only compared and signed. So a parameter becomes text where it is asked for, and the bytes stand as a
/// signature wants them, `name=value&name=value`.
package struct HTTPQuery: Sendable {
    package private(set) var bytes: [UInt8] = []
    private var places: [Place] = []

    /// Offsets in `bytes`. The value begins behind the `=`; a name may hold others.
    private struct Place {
        let start: Int
        let equals: Int
        var end: Int
    }

    package init() {}

    package init(_ parameters: some Sequence<(name: String, value: String)>) {
        for parameter in parameters { append(name: parameter.name.utf8, value: parameter.value.utf8) }
    }

    /// Room for so much, so that appending does not grow anything.
    package mutating func reserve(parameters: Int, bytes count: Int) {
        places.reserveCapacity(parameters)
        bytes.reserveCapacity(count)
    }

    package mutating func append(name: some Collection<UInt8>, value: some Collection<UInt8>) {
        if !places.isEmpty { bytes.append(UInt8(ascii: "&")) }
        let start = bytes.count
        bytes += name
        bytes.append(UInt8(ascii: "="))
        bytes += value
        places.append(Place(start: start, equals: start + name.count, end: bytes.count))
    }

    /// Appends a parameter as it is written. Without an `=` it has no value.
    package mutating func append(_ parameter: UnsafeRawBufferPointer) {
        if !places.isEmpty { bytes.append(UInt8(ascii: "&")) }
        let start = bytes.count
        unsafe bytes.append(contentsOf: parameter)
        if let equals = unsafe parameter.firstIndex(of: UInt8(ascii: "=")) {
            places.append(Place(start: start, equals: start + equals, end: bytes.count))
        } else {
            places.append(Place(start: start, equals: bytes.count, end: bytes.count + 1))
            bytes.append(UInt8(ascii: "="))
        }
    }

    /// The last parameter's value goes on. There has to be one.
    package mutating func appendToLastValue(_ more: some Sequence<UInt8>) {
        bytes += more
        places[places.count - 1].end = bytes.count
    }

    /// The value of the first parameter of that name.
    package func value(_ name: StaticString) -> String? {
        bytes(name).map { String(decoding: $0, as: UTF8.self) }
    }

    /// As `value`, as it came in.
    package func bytes(_ name: StaticString) -> ArraySlice<UInt8>? {
        let place = unsafe bytes.withUnsafeBufferPointer { bytes in places.first { unsafe Self.isName(name, at: $0, in: bytes) } }
        return place.map { bytes[$0.equals + 1..<$0.end] }
    }

    /// Appends all parameters but those of that name, in their order.
    package func appendPairs(without name: StaticString, to text: inout [UInt8]) {
        unsafe bytes.withUnsafeBufferPointer { bytes in
            var isFirst = true
            for place in places where unsafe !Self.isName(name, at: place, in: bytes) {
                if !isFirst { text.append(UInt8(ascii: "&")) }
                isFirst = false
                unsafe text.append(contentsOf: UnsafeBufferPointer(rebasing: bytes[place.start..<place.end]))
            }
        }
    }

    /// Whether all parameters but those of that name stand in the order of their names' bytes.
    package func isSorted(without name: StaticString) -> Bool {
        unsafe bytes.withUnsafeBufferPointer { bytes in
            var last = unsafe UnsafeBufferPointer<UInt8>(start: nil, count: 0)
            for place in places where unsafe !Self.isName(name, at: place, in: bytes) {
                let own = unsafe UnsafeBufferPointer(rebasing: bytes[place.start..<place.equals])
                if unsafe own.lexicographicallyPrecedes(last) { return false }
                unsafe last = unsafe own
            }
            return true
        }
    }

    /// No name has a capital letter, nor anything beyond ASCII that may be one.
    package var isInLowerCase: Bool {
        unsafe bytes.withUnsafeBufferPointer { bytes in
            for place in places {
                for index in place.start..<place.equals {
                    let byte = unsafe bytes[index]
                    if byte >= 0x80 || byte &- UInt8(ascii: "A") < 26 { return false }
                }
            }
            return true
        }
    }

    private static func isName(_ name: StaticString, at place: Place, in bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        unsafe name.isEqual(to: UnsafeBufferPointer(rebasing: bytes[place.start..<place.equals]))
    }
}

extension HTTPQuery: RandomAccessCollection {
    package var startIndex: Int { 0 }
    package var endIndex: Int { places.count }
    // Of its own, because a caller in another module would otherwise count by way of the protocol.
    package var count: Int { places.count }
    package var isEmpty: Bool { places.isEmpty }

    package subscript(index: Int) -> (name: String, value: String) {
        let place = places[index]
        return (
            String(decoding: bytes[place.start..<place.equals], as: UTF8.self), String(decoding: bytes[place.equals + 1..<place.end], as: UTF8.self)
        )
    }
}
