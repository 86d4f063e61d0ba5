import Testing

/// The way into the hub and what keeps a connection there.
extension ConformanceTests.Connections {
    @Test("C01 the first frame says who one is, in a string, with a time-out above zero") func firstFrame() async throws {
        try await conformance("c01_first_frame")
    }

    @Test("C01 a socket id is never given twice") func socketIDs() async throws {
        try await conformance("c01_socket_ids_are_never_reused")
    }

    @Test("C01 what every library puts into the URL is understood") func queries() async throws {
        try await conformance("c01_real_queries")
    }

    @Test("C01 a client may speak before it is greeted") func speaksFirst() async throws {
        try await conformance("c01_client_speaks_first")
    }

    @Test("C02 an offered sub-protocol is selected, and none is needed") func subprotocol() async throws {
        try await conformance("c02_subprotocol")
    }

    @Test("C03 an unknown key is upgraded, told 4001 and closed with 4001") func unknownKey() async throws {
        try await conformance("c03_unknown_key")
    }

    @Test("C03 a disabled app and a foreign origin likewise, with their codes; any other path is not upgraded") func otherRefusals()
        async throws
    {
        try await conformance("c03_other_refusals")
    }

    @Test("C03 beyond the app's connections: 4004, until one leaves") func connectionLimit() async throws {
        try await conformance("c03_connection_limit")
    }

    @Test("C03 beyond the connections of the node or of an address: 4100") func nodeLimits() async throws {
        try await conformance("c03_node_limits")
    }

    @Test("C04 versions 4 to 7 are accepted, others refused with 4007, what is no number with 4006") func versions() async throws {
        try await conformance("c04_versions")
    }

    @Test("C05 pusher:ping in every spelling is answered with pusher:pong and {}") func pings() async throws {
        try await conformance("c05_pings")
    }

    @Test("C06 a control PING is answered with its payload") func controlPing() async throws {
        try await conformance("c06_control_ping_is_answered")
    }

    @Test("C06 a silent peer gets a control PING, and then 4201") func silentPeer() async throws {
        try await conformance("c06_silent_peer_is_closed")
    }

    @Test("C07 who only answers control PINGs stays") func controlPong() async throws {
        try await conformance("c07_control_pong_is_life")
    }

    @Test("C07 who only sends control PINGs stays") func ownControlPing() async throws {
        try await conformance("c07_control_ping_is_life")
    }

    @Test("C07 what the hub sends is no sign of life") func outgoing() async throws {
        try await conformance("c07_outgoing_frames_are_no_life")
    }

    @Test("C07 a client that is silent for longer than the hub's interval is asked, not dropped") func longSilence() async throws {
        try await conformance("c07_java_times")
    }

    @Test("C28 a slow reader costs little, is closed with 4100, and disturbs nobody") func slowReader() async throws {
        try await conformance("c28_slow_reader")
    }

    @Test("C29 after a restart all come back, spread over time, and presence is right") func restart() async throws {
        try await conformance("c29_restart")
    }

    @Test("C29 socket ids of the process before mean nobody") func formerSocketIDs() async throws {
        try await conformance("c29_socket_ids_of_another_life")
    }

    @Test("C30 every kind of frame has its data in the right form and nothing that is null") func everyKindOfFrame() async throws {
        try await conformance("c30_every_kind_of_frame")
    }

    @Test("C31 malformed frames are answered or ignored on a connection that stays") func malformed() async throws {
        try await conformance("c31_malformed_frames")
    }

    @Test("C31 random changes of good frames") func randomBytes() async throws {
        try await conformance("c31_random_bytes")
    }

    @Test("C31 a frame may have twice an event's data and four kilobytes, not a byte more") func frameLimit() async throws {
        try await conformance("c31_inbound_frame_limit")
    }

    @Test("C31 a frame of a megabyte ends its own connection only") func megabyte() async throws {
        try await conformance("c31_megabyte_frame")
    }

    @Test("C31 what breaks WebSocket's rules costs at most its own connection") func brokenWebSocket() async throws {
        try await conformance("c31_broken_websocket")
    }

    @Test("C31 a message in a hundred fragments is one message") func fragments() async throws {
        try await conformance("c31_fragments")
    }

    @Test("C31 an announced length costs nothing") func announcedLength() async throws {
        try await conformance("c31_announced_length")
    }

    @Test("C31 half handshakes and half requests end by themselves") func slowBeginnings() async throws {
        try await conformance("c31_slow_beginnings")
    }
}
