import Testing

/// Signing in and what follows from it.
extension ConformanceTests.Users {
    @Test("C21 a sign-in is answered with the very string that was signed") func echo() async throws {
        try await conformance("c21_success_echoes_the_string")
    }

    @Test("C21 a sign-in whose data is a string of JSON") func dataAsText() async throws {
        try await conformance("c21_data_as_text")
    }

    @Test("C21 wrong signatures and ids are refused without a close") func refused() async throws {
        try await conformance("c21_what_is_refused")
    }

    @Test("C21 another id on the same connection is refused, the same one is not") func oneUser() async throws {
        try await conformance("c21_one_user_per_connection")
    }

    @Test("C21 the user's channel is for its owner alone") func owner() async throws {
        try await conformance("c21_server_to_user_is_the_owners")
    }

    @Test("C21 an event to a user reaches all its sockets, on every loop") func allSockets() async throws {
        try await conformance("c21_all_sockets_of_the_user")
    }

    @Test("C21 who is signed in joins presence without channel data") func presence() async throws {
        try await conformance("c21_presence_of_the_signed_in")
    }

    @Test("C22 the watchlist's first state and its changes") func watchlist() async throws {
        try await conformance("c22_initial_state_and_changes")
    }

    @Test("C22 a hundred are watched, of 101 the first hundred, with 4302") func watchlistLimit() async throws {
        try await conformance("c22_limit")
    }

    @Test("C22 no watchlist where the app has none") func watchlistOff() async throws {
        try await conformance("c22_off")
    }

    @Test("C26 terminate_connections ends what stands for the user, and nothing else") func terminate() async throws {
        try await conformance("c26_terminate")
    }

    @Test("C26 a sign-in can be ended as soon as it is answered") func terminateAtOnce() async throws {
        try await conformance("c26_right_after_the_sign_in")
    }

    @Test("C26 the python library's path without /apps does the same") func terminateAlias() async throws {
        try await conformance("c26_terminate_by_the_alias")
    }

    @Test("C26 user ids in paths, percent-encoded or not") func idsInPaths() async throws {
        try await conformance("c26_ids_in_paths")
    }
}
