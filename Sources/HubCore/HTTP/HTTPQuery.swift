internal import Glibc

/// A request's decoded parameters in the order received: all bytes in one array, and offsets into it.
///
/// A publish has five parameters, which are only compared and signed. A parameter therefore becomes a `String` only on
/// request. The bytes keep the form that is signed, `name=value&name=value`.
package struct HTTPQuery: Sendable {
    /// All parameters, joined as `name=value&name=value`.
    package private(set) var bytes: [UInt8] = []
    private var places: [Place] = []

    /// Offsets in `bytes`. The value begins after the `=` at `equals`; a name may hold further ones.
    private struct Place {
        let start: Int
        let equals: Int
        var end: Int
    }

    /// Enough for a publish, so that its places are found without growing an array.
    private static let countUsual = 6

    /// No parameters.
    package init() {}

    /// Decoded parameters in their order.
    package init(_ parameters: some Sequence<(name: String, value: String)>) {
        for parameter in parameters { append(name: parameter.name.utf8, value: parameter.value.utf8) }
    }

    /// Reserves room, so that appending does not reallocate.
    package mutating func reserve(bytes count: Int) { bytes.reserveCapacity(count) }

    /// Bytes of memory that the parameters have.
    package var room: Int { bytes.capacity + places.capacity * MemoryLayout<Place>.stride }

    /// Removes all parameters, and keeps their room.
    package mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        places.removeAll(keepingCapacity: true)
    }

    /// Appends one decoded parameter.
    package mutating func append(name: some Collection<UInt8>, value: some Collection<UInt8>) {
        if !places.isEmpty { bytes.append(UInt8(ascii: "&")) }
        let start = bytes.count
        bytes += name
        bytes.append(UInt8(ascii: "="))
        bytes += value
        places.append(Place(start: start, equals: start + name.count, end: bytes.count))
        assert(isConsistent, "\(places.count) parameters do not end with byte \(bytes.count)")
    }

    /// Appends one parameter, written as `name=value`. Without an `=` the value is empty.
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
        assert(isConsistent, "\(places.count) parameters do not end with byte \(bytes.count)")
    }

    /// Takes the first parameters, which are written as they are meant. There must be none yet.
    /// - Returns: false: some are empty or have no `=`, and none was taken.
    package mutating func take(_ written: UnsafeRawBufferPointer) -> Bool {
        assert(bytes.isEmpty && places.isEmpty, "\(places.count) parameters are there already")
        places.reserveCapacity(Self.countUsual)
        var start = 0
        while start <= written.count {
            let end = unsafe Self.place(of: UInt8(ascii: "&"), in: written, from: start, to: written.count) ?? written.count
            guard let equals = unsafe Self.place(of: UInt8(ascii: "="), in: written, from: start, to: end) else {
                places.removeAll(keepingCapacity: true)
                return false
            }
            places.append(Place(start: start, equals: equals, end: end))
            start = end + 1
        }
        unsafe bytes.append(contentsOf: written)
        assert(isConsistent, "\(places.count) parameters do not end with byte \(bytes.count)")
        return true
    }

    private static func place(of byte: UInt8, in bytes: UnsafeRawBufferPointer, from start: Int, to end: Int) -> Int? {
        guard let base = bytes.baseAddress, start < end else { return nil }
        return unsafe memchr(base + start, Int32(byte), end - start).map { unsafe UnsafeRawPointer($0) - base }
    }

    /// Extends the last parameter's value. At least one parameter must exist.
    package mutating func appendToLastValue(_ more: some Sequence<UInt8>) {
        bytes += more
        places[places.count - 1].end = bytes.count
        assert(isConsistent, "\(places.count) parameters do not end with byte \(bytes.count)")
    }

    /// Whether the last parameter ends where the bytes end, and has its `=` inside.
    private var isConsistent: Bool {
        guard let last = places.last else { return bytes.isEmpty }
        return last.end == bytes.count && last.start <= last.equals && last.equals < last.end && bytes[last.equals] == UInt8(ascii: "=")
    }
    /// The value of the first parameter of that name.
    package func value(_ name: StaticString) -> String? {
        unsafe bytes.withUnsafeBufferPointer { bytes in
            guard let place = unsafe place(name, in: bytes) else { return nil }
            return unsafe String(decoding: UnsafeBufferPointer(rebasing: bytes[place.equals + 1..<place.end]), as: UTF8.self)
        }
    }

    /// As `value`, but as bytes.
    package func bytes(_ name: StaticString) -> ArraySlice<UInt8>? {
        unsafe bytes.withUnsafeBufferPointer { unsafe place(name, in: $0) }.map { bytes[$0.equals + 1..<$0.end] }
    }

    private func place(_ name: StaticString, in bytes: UnsafeBufferPointer<UInt8>) -> Place? {
        for place in places where unsafe Self.isName(name, at: place, in: bytes) { return place }
        return nil
    }

    /// Writes all parameters except those called `name`, in order, as `name=value&name=value`.
    /// - Parameter room: as long as `bytes`, at least.
    /// - Returns: the number of bytes written.
    package func writePairs(without name: StaticString, to room: UnsafeMutableRawBufferPointer) -> Int {
        unsafe bytes.withUnsafeBufferPointer { bytes in
            var text = unsafe ByteRoom(room)
            var start = 0
            for place in places where unsafe Self.isName(name, at: place, in: bytes) {
                unsafe text.write(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: bytes[start..<place.start])))
                start = place.end + 1
            }
            if start <= bytes.count {
                unsafe text.write(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: bytes[start...])))
                return text.count
            }
            // Without the `&` in front of a last parameter that is left out.
            return text.count == 0 ? 0 : text.count - 1
        }
    }

    /// Whether all parameters, except those called `name`, are sorted by the bytes of their names.
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

    /// Whether these are the parameters' names, in this order.
    package func areNamed(_ names: [StaticString]) -> Bool {
        guard names.count == places.count else { return false }
        return unsafe bytes.withUnsafeBufferPointer { bytes in
            for index in names.indices where unsafe !Self.isName(names[index], at: places[index], in: bytes) { return false }
            return true
        }
    }

    /// Whether the first parameter of that name has this value.
    package func has(_ name: StaticString, _ value: StaticString) -> Bool {
        unsafe bytes.withUnsafeBufferPointer { bytes in
            guard let place = unsafe place(name, in: bytes) else { return false }
            return unsafe value.isEqual(to: UnsafeBufferPointer(rebasing: bytes[place.equals + 1..<place.end]))
        }
    }

    /// Whether every name is ASCII without capital letters.
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
    /// 0.
    package var startIndex: Int { 0 }
    /// The number of parameters.
    package var endIndex: Int { places.count }
    // Declared here because callers in other modules would otherwise count via the protocol's default.
    /// The number of parameters. O(1).
    package var count: Int { places.count }
    /// Whether there is no parameter. O(1).
    package var isEmpty: Bool { places.isEmpty }

    /// The parameter at that place, in two new strings.
    package subscript(index: Int) -> (name: String, value: String) {
        let place = places[index]
        return (
            String(decoding: bytes[place.start..<place.equals], as: UTF8.self),
            String(decoding: bytes[place.equals + 1..<place.end], as: UTF8.self)
        )
    }
}
