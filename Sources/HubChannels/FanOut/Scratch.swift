/// Memory that one loop refills every turn. It grows, never shrinks, and allocates nothing in the steady state.
@safe struct Scratch<Element: BitwiseCopyable>: ~Copyable {
    private(set) var base: UnsafeMutablePointer<Element>
    private(set) var capacity: Int
    var count = 0

    init(capacity: Int = 64) {
        self.capacity = capacity
        unsafe base = .allocate(capacity: capacity)
    }

    deinit {
        unsafe base.deallocate()
    }

    var isEmpty: Bool { count == 0 }

    var buffer: UnsafeBufferPointer<Element> {
        assert(count >= 0 && count <= capacity, "\(count) elements in room for \(capacity)")
        return unsafe UnsafeBufferPointer(start: base, count: count)
    }

    /// Makes room for a total of `needed` elements; existing elements stay.
    mutating func reserve(_ needed: Int) {
        assert(count >= 0 && count <= capacity, "\(count) elements in room for \(capacity)")
        if needed <= capacity { return }
        let larger = max(needed, 2 * capacity)
        let grown = UnsafeMutablePointer<Element>.allocate(capacity: larger)
        unsafe grown.initialize(from: base, count: count)
        unsafe base.deallocate()
        unsafe base = unsafe grown
        capacity = larger
    }

    mutating func append(_ element: Element) {
        reserve(count + 1)
        unsafe (base + count).initialize(to: element)
        count += 1
    }

    mutating func append(from source: UnsafePointer<Element>, count added: Int) {
        assert(added >= 0, "\(added) elements are appended")
        reserve(count + added)
        unsafe (base + count).initialize(from: source, count: added)
        count += added
    }

    /// Exchanges two of the existing elements.
    mutating func swapAt(_ one: Int, _ other: Int) {
        assert(one < count && other < count, "elements \(one) and \(other) of \(count)")
        (unsafe base[one], unsafe base[other]) = unsafe (base[other], base[one])
    }

    /// Grows to a total of `needed` elements, the new ones with this value.
    mutating func extend(to needed: Int, with element: Element) {
        if needed <= count { return }
        reserve(needed)
        unsafe (base + count).initialize(repeating: element, count: needed - count)
        count = needed
    }
}
