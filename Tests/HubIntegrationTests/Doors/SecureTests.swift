import Testing

/// Scenarios of other suites through TLS, with the same expectations. `ConformanceTests` has its own.
@Suite struct SecureTests {
    struct Proof: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let run: @Sendable () async throws -> Void

        init(_ name: String, _ run: @escaping @Sendable () async throws -> Void) {
            testDescription = name
            self.run = run
        }
    }

    static let proofs = [
        Proof("Pysher on every kind of channel") { try await ProtocolTests().pysherOnEveryKindOfChannel(loops: 2) },
        Proof("every call of the backend library") { try await ProtocolTests().everyCallOfTheBackendLibrary(loops: 2) },
        Proof("chunked bodies") { try await ProtocolTests().chunkedBodies() },
        Proof("pipelined requests") { try await ProtocolTests().pipelinedRequests() },
        Proof("a silent peer") { try await AppTests().aSilentPeerIsDropped() },
        Proof("sessions") { try await HTTPAPITests().sessions() },
        Proof("joining") { try await HTTPAPITests().joining() },
        Proof("sent elsewhere at the end") { try await ServerLifeTests().clientsAreSentElsewhere(loops: 2) },
    ]

    @Test(arguments: proofs) func theSame(_ proof: Proof) async throws {
        try await Wire.$isSecure.withValue(true) { try await proof.run() }
    }
}
