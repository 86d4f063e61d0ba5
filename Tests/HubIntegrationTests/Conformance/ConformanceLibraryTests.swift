import Testing

/// Real client libraries, and what stands for those that do not run here.
extension ConformanceTests.Libraries {
    @Test("pusher publishes: one channel, many, batches, without one socket") func publishing() async throws {
        try await conformance("lib_pusher_publishing")
    }

    @Test("pusher asks for channels, counts, users and caches") func queries() async throws {
        try await conformance("lib_pusher_queries")
    }

    @Test("pusher raises the right error for each refusal") func errors() async throws {
        try await conformance("lib_pusher_errors")
    }

    @Test("pusher signs users in, sends to them and ends their connections") func users() async throws {
        try await conformance("lib_pusher_users")
    }

    @Test("pusher authorizes private, presence and encrypted channels") func authorizing() async throws {
        try await conformance("lib_pusher_authenticate")
    }

    @Test("pusher encrypts what a client decrypts") func encrypted() async throws {
        try await conformance("lib_pusher_encrypted")
    }

    @Test("pusher validates a webhook that was delivered") func webhook() async throws {
        try await conformance("lib_pusher_webhook")
    }

    @Test("pysher connects, pings, subscribes, is told and speaks") func pysher() async throws {
        try await conformance("lib_pysher")
    }

    @Test("pysher goes on after a refused subscription") func pysherRefused() async throws {
        try await conformance("lib_pysher_survives_a_refusal")
    }

    @Test("pysher stays away from an unknown key") func pysherUnknownKey() async throws {
        try await conformance("lib_pysher_unknown_key")
    }

    @Test("pysher is back after a restart") func pysherRestart() async throws {
        try await conformance("lib_pysher_restart")
    }

    @Test("PusherSwift and pusher-websocket-java, emulated, through a session and a restart") func mobile() async throws {
        try await conformance("lib_mobile_session")
    }
}
