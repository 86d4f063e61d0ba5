import Testing

/// Webhooks to a backend.
extension ConformanceTests.Webhooks {
    @Test("C27 the signature is that of the bytes sent, and the headers are exact") func signedBytes() async throws {
        try await conformance("c27_signed_bytes")
    }

    @Test("C27 every kind with its members") func kinds() async throws {
        try await conformance("c27_every_kind")
    }

    @Test("C27 events of a channel in their order") func order() async throws {
        try await conformance("c27_order")
    }

    @Test("C27 a reload within three seconds is no event") func reload() async throws {
        try await conformance("c27_reload")
    }

    @Test("C27 an endpoint gets the kinds it asked for") func filters() async throws {
        try await conformance("c27_filters")
    }

    @Test("C27 refused twice, accepted once: the same bytes, backed off, and then no more") func retry() async throws {
        try await conformance("c27_retry")
    }

    @Test("C27 a dead endpoint delays nobody") func deadEndpoint() async throws {
        try await conformance("c27_dead_endpoint")
    }

    @Test("C27 retried for five minutes, also after a restart, with time_ms unchanged") func fiveMinutes() async throws {
        try await conformance("c27_five_minutes")
    }

    @Test("C27 a slow endpoint is tried again and delays no other") func slowEndpoint() async throws {
        try await conformance("c27_slow_endpoint")
    }
}
