internal import Synchronization

/// Lets in as many at a time as it has places. Any thread.
final class Turnstile: Sendable {
    private let places: Int
    private let inside = Atomic(0)

    init(places: Int) { self.places = places }

    /// Takes a place; false: there is none. Whoever came in leaves again.
    func enter() -> Bool {
        guard inside.wrappingAdd(1, ordering: .relaxed).newValue > places else { return true }
        leave()
        return false
    }

    /// Gives the place back.
    func leave() { inside.wrappingSubtract(1, ordering: .relaxed) }
}
