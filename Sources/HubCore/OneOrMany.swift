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

    /// A list of one value.
    @inlinable public init(one element: Element) { storage = .one(element) }

    /// The values of an array, in its order.
    @inlinable public init(_ elements: [Element]) { storage = elements.count == 1 ? .one(elements[0]) : .many(elements) }
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

    /// The number of values. Declared here, because the collections' own way to it is generic.
    @inlinable public var count: Int { endIndex }

    /// The value at that place.
    @inlinable public subscript(index: Int) -> Element {
        switch storage {
        case .one(let element):
            precondition(index == 0, "a list of one value has no place \(index)")
            return element
        case .many(let elements): return elements[index]
        }
    }

    /// Walks the values in their order. A walk by places would ask for the form of the list at each step.
    public struct Iterator: IteratorProtocol {
        @usableFromInline var one: Element?
        @usableFromInline var many: IndexingIterator<[Element]>

        @inlinable init(_ storage: Storage) {
            switch storage {
            case .one(let element): (one, many) = (element, [].makeIterator())
            case .many(let elements): (one, many) = (nil, elements.makeIterator())
            }
        }

        /// The next value; nil behind the last one.
        @inlinable public mutating func next() -> Element? {
            guard let element = one else { return many.next() }
            one = nil
            return element
        }
    }

    /// A walk from the first value on.
    @inlinable public func makeIterator() -> Iterator { Iterator(storage) }
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
