import HubTesting

/// One parser, or one group of them, under attack: makes inputs and judges what becomes of them.
///
/// An input is always bytes: a file holds one, a crash leaves one, and every check can be driven by any other generator.
/// Not for more than one thread.
package struct FuzzTarget {
    /// Draws an input; the same random state gives the same bytes.
    package let input: (inout SeededRandom) -> [UInt8]
    /// Feeds the input to the code; returns what is wrong, or nil.
    package let check: ([UInt8]) -> String?
    /// The rest, when the last input is through.
    package var finish: () -> String? = { nil }

    /// Every target by name, its part of a run in thousandths of all inputs, and what makes it. Making one may start a server, so
    /// only the wanted ones are made.
    package static let all: [(name: String, share: Int, make: @Sendable () throws -> FuzzTarget)] = [
        ("frames", 150, FrameTarget.make), ("publishes", 120, PublishTarget.make), ("signatures", 60, SignatureTarget.make),
        ("subscriptions", 80, SubscriptionTarget.make), ("names", 180, NameTarget.make), ("json", 120, JSONTarget.make),
        ("bodies", 100, BodyTarget.make), ("heads", 60, HeadTarget.make), ("wire", 60, WireTarget.make),
        ("templates", 24, TemplateTarget.make), ("definitions", 12, DefinitionTarget.make),
        ("configurations", 12, ConfigurationTarget.make), ("engine", 21, EngineTarget.make), ("sockets", 1, SocketTarget.make),
    ]

    /// Longest input, in bytes.
    package static let inputBytesMax = 1 << 20
}
