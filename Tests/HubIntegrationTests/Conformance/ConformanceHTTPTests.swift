import Testing

/// The backend's API.
extension ConformanceTests.HTTP {
    @Test("C23 H1 to H7 at their time; 599 seconds off it accepted, 600 refused; each changed: refused") func vectors() async throws {
        try await conformance("c23_vectors_and_skew")
    }

    @Test("C23 parameters in any order, escaped or not") func spellings() async throws {
        try await conformance("c23_spellings_of_the_query")
    }

    @Test("C23 wrong signatures, times, body_md5 and keys are refused with their sentence") func refused() async throws {
        try await conformance("c23_what_is_refused")
    }

    @Test("C23 arrays in the query, as PHP and as pusher-signature sign them") func arrays() async throws {
        try await conformance("c23_signed_arrays")
    }

    @Test("C23 a path prefix of a proxy, signed or not") func proxy() async throws {
        try await conformance("c23_behind_a_proxy")
    }

    @Test("C24 empty results are objects, users an array, occupied always there") func emptyShapes() async throws {
        try await conformance("c24_empty_shapes")
    }

    @Test("C24 counts of channels, publishes and batches") func counts() async throws {
        try await conformance("c24_counts")
    }

    @Test("C24 attributes that do not apply are refused") func attributes() async throws {
        try await conformance("c24_attributes_that_do_not_apply")
    }

    @Test("C24 every refusal is an object with a sentence") func errors() async throws {
        try await conformance("c24_errors")
    }

    @Test("C25 10240 bytes of data are accepted, 10241 are a 413") func dataSize() async throws {
        try await conformance("c25_data_size")
    }

    @Test("C25 100 channels and 10 items are accepted, 101 and 11 are a 400") func publishCounts() async throws {
        try await conformance("c25_counts")
    }

    @Test("C25 each field at its limit and beyond") func fields() async throws {
        try await conformance("c25_fields")
    }

    @Test("C25 many requests over one connection, a refused one among them") func keepAlive() async throws {
        try await conformance("c25_one_connection_for_many_requests")
    }
}
