/// The devices whose sign of life keeps a push away.
package enum SuppressScope: String, Sendable, CaseIterable {
    /// One live device is enough for all of a participant's devices.
    case participant
    /// Each device stands for itself.
    case device
}
