import Testing

/// Checks from every part of the list once more, through TLS.
extension ConformanceTests.Secure {
    @Test(
        "through TLS too",
        arguments: [
            "c02_subprotocol", "c03_unknown_key", "c04_versions", "c05_pings", "c06_control_ping_is_answered", "c08_unsubscribe",
            "c11_refused_subscribe", "c12_presence", "c12_one_person_on_many_sockets", "c18_who_gets_it", "c18_what_is_refused", "c18_rate",
            "c19_exclusion", "c20_order", "c23_what_is_refused", "c24_errors", "c25_data_size", "c25_counts", "c25_fields",
            "c28_slow_reader", "c31_malformed_frames", "c31_broken_websocket", "c31_inbound_frame_limit", "c31_megabyte_frame",
            "c31_slow_beginnings",
        ]) func theSame(check: String) async throws
    {
        try await conformance("tls \(check)")
    }
}
