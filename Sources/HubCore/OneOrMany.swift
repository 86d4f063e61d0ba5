/// A list that holds one value as a rule: a single value needs no memory on the heap.
///
/// Public and inlinable, because each publish makes and reads such lists; see `Mailbox`.
public struct OneOrMany<Element> {
    /// `many` never holds exactly one value, so equal lists have equal storage.
    @usableFromInline enum Storage {
        case one(Element)
        case many([Element])
    }

    @usableFromInline var storage: Storage

    /// An empty list.
    @inlinable public init() { storage = .many([]) }

    /// A list of one value.
    @inlinable public init(one element: Element) { storage = .one(element) }

    /// The values of an array, in its order.
    @inlinable public init(_ elements: [Element]) { storage = elements.count == 1 ? .one(elements[0]) : .many(elements) }

    /// Appends a value.
    @inlinable public mutating func append(_ element: Element) {
        switch storage {
        case .one(let first): storage = .many([first, element])
        case .many(var elements):
            if elements.isEmpty {
                storage = .one(element)
                return
            }
            // A second reference to the array would have it copied.
            storage = .many([])
            elements.append(element)
            storage = .many(elements)
        }
    }
}

extension OneOrMany: RandomAccessCollection {
    /// 0.
    @inlinable public var startIndex: Int { 0 }
    /// The number of values.
    @inlinable public var endIndex: Int {
        switch storage {
        case .one: 1
        case .many(let elements): elements.count
        }
    }

    /// The value at that place.
    @inlinable public subscript(index: Int) -> Element {
        switch storage {
        case .one(let element):
            precondition(index == 0, "a list of one value has no place \(index)")
            return element
        case .many(let elements): return elements[index]
        }
    }
}

extension OneOrMany: ExpressibleByArrayLiteral {
    /// The values in their order.
    @inlinable public init(arrayLiteral elements: Element...) { self.init(elements) }
}

extension OneOrMany.Storage: Sendable where Element: Sendable {}
extension OneOrMany.Storage: Equatable where Element: Equatable {}
extension OneOrMany.Storage: Hashable where Element: Hashable {}
extension OneOrMany: Sendable where Element: Sendable {}
extension OneOrMany: Equatable where Element: Equatable {}
extension OneOrMany: Hashable where Element: Hashable {}
