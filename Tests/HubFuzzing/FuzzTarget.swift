import HubTesting

/// One parser, or a group of parsers, under test: makes inputs and judges the results.
///
/// An input is always bytes, so it fits a file, survives a crash and can come from any other generator. Use on one thread only.
package struct FuzzTarget {
    /// Draws an input; equal random states give equal bytes.
    package let input: (inout SeededRandom) -> [UInt8]
    /// Feeds the input to the code; returns a complaint, or nil.
    package let check: ([UInt8]) -> String?
    /// Final checks after the last input.
    package var finish: () -> String? = { nil }

    /// All targets: name, share of a run in thousandths of all inputs, and factory. A factory may start a server, so only selected targets
    /// are made.
    package static let all: [(name: String, share: Int, make: @Sendable () throws -> FuzzTarget)] = [
        ("frames", 150, FrameTarget.make), ("publishes", 120, PublishTarget.make), ("signatures", 60, SignatureTarget.make),
        ("subscriptions", 80, SubscriptionTarget.make), ("names", 180, NameTarget.make), ("json", 120, JSONTarget.make),
        ("bodies", 100, BodyTarget.make), ("heads", 60, HeadTarget.make), ("wire", 60, WireTarget.make),
        ("templates", 24, TemplateTarget.make), ("definitions", 12, DefinitionTarget.make),
        ("configurations", 12, ConfigurationTarget.make), ("engine", 21, EngineTarget.make), ("sockets", 1, SocketTarget.make),
    ]

    /// Maximum length of an input, in bytes.
    package static let inputBytesMax = 1 << 20
}
