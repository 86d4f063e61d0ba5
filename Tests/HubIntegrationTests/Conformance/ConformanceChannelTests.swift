import Testing

/// Subscribing, signatures, presence, caches, client events, delivery.
extension ConformanceTests.Channels {
    @Test("C08 a public subscribe with auth absent, empty or null is acknowledged once, with {}") func publicSubscribe() async throws {
        try await conformance("c08_public_subscribe")
    }

    @Test("C08 every kind of channel is acknowledged exactly once") func everyKind() async throws {
        try await conformance("c08_every_kind_is_acknowledged_once")
    }

    @Test("C08 the kind is decided by the prefix with its hyphen") func prefixes() async throws {
        try await conformance("c08_kinds_by_prefix")
    }

    @Test("C08 names of 200 characters are good, of 201 or with other characters not") func names() async throws {
        try await conformance("c08_channel_names")
    }

    @Test("C08 unsubscribing has no answer and ends the events; off and on at once works") func unsubscribing() async throws {
        try await conformance("c08_unsubscribe")
    }

    @Test("C08 the acknowledgement comes before the channel's events, and no older event after it") func acknowledgedFirst() async throws {
        try await conformance("c08_acknowledged_before_events")
    }

    @Test("C08 nothing older than a subscription is told, and counts know of it at once") func noOlderEvents() async throws {
        try await conformance("c08_no_older_events")
    }

    @Test("C08 a connection may have a thousand subscriptions") func subscriptionsMax() async throws {
        try await conformance("c08_subscriptions_per_connection")
    }

    @Test("C09 V1…V10 accepted; a bit, the socket id or the key changed: refused without a close", arguments: 1...10)
    func vectors(number: Int) async throws {
        try await conformance("c09_v\(number)")
    }

    @Test("C09 several keys of an app, each with its own secret") func severalKeys() async throws {
        try await conformance("c09_several_keys")
    }

    @Test("C09 channel data of a private channel, signed or not") func privateData() async throws {
        try await conformance("c09_private_with_channel_data")
    }

    @Test("C10 V4 and V5 are accepted byte for byte and never mixed up") func bytesAsSigned() async throws {
        try await conformance("c10_bytes_as_signed")
    }

    @Test("C11 a refused subscribe: error without a code, an event with the channel, a connection that goes on") func refused() async throws
    {
        try await conformance("c11_refused_subscribe")
    }

    @Test("C12 the joiner is in its own list, and hash has a key for every id") func presence() async throws {
        try await conformance("c12_presence")
    }

    @Test("C12 one person on six sockets of two loops is one member, added once, removed at the end") func manySockets() async throws {
        try await conformance("c12_one_person_on_many_sockets")
    }

    @Test("C12 a person's user_info is that of the newest join") func newestInfo() async throws {
        try await conformance("c12_newest_info")
    }

    @Test("C12 leaving and coming back in one breath") func rejoining() async throws {
        try await conformance("c12_rejoining")
    }

    @Test("C13 a number and the same number as text are one member") func numericIDs() async throws {
        try await conformance("c13_numeric_ids")
    }

    @Test("C14 at the limit a new user is refused and a further socket of a member accepted") func memberLimit() async throws {
        try await conformance("c14_member_limit")
    }

    @Test("C14 of twelve who race for three places exactly three get in") func memberRace() async throws {
        try await conformance("c14_race_for_the_last_places")
    }

    @Test("C15 a hundred who join at once all see the same hundred") func hundredJoins() async throws {
        try await conformance("c15_hundred_join_at_once")
    }

    @Test("C15 after random comings and goings the lists are right") func churn() async throws {
        try await conformance("c15_comings_and_goings")
    }

    @Test("C15 a user object of a kilobyte and an id of 128 characters are accepted, much more is not") func userObject() async throws {
        try await conformance("c15_user_object_limits")
    }

    @Test("C16 encrypted data is carried untouched and the acknowledgement is exactly {}") func encrypted() async throws {
        try await conformance("c16_encrypted")
    }

    @Test("C17 every kind of cache channel: acknowledged, then the last event or a miss") func cache() async throws {
        try await conformance("c17_cache")
    }

    @Test("C17 first the acknowledgement, then the cached event") func cacheOrder() async throws {
        try await conformance("c17_order")
    }

    @Test("C17 what fills a cache: batches, many channels, no listener; not client events") func cacheFilling() async throws {
        try await conformance("c17_what_fills_it")
    }

    @Test("C17 info=cache tells the data and the seconds left") func cacheAttribute() async throws {
        try await conformance("c17_attribute")
    }

    @Test("C17 who subscribes amid events gets the newest and each later one, once") func cacheGap() async throws {
        try await conformance("c17_no_gap")
    }

    @Test("C17 a cached event is forgotten after half an hour") func cacheLifetime() async throws {
        try await conformance("c17_lifetime")
    }

    @Test("C17 subscription_count at every change, never on presence channels") func subscriptionCount() async throws {
        try await conformance("c17_subscription_count")
    }

    @Test("C17 subscription_count of a large channel at most every five seconds") func largeSubscriptionCount() async throws {
        try await conformance("c17_large_channels_are_told_less")
    }

    @Test("C18 a client event reaches all others, with a user_id made by the server") func clientEvent() async throws {
        try await conformance("c18_who_gets_it")
    }

    @Test("C18 its data arrives as a string, whatever it was") func clientEventData() async throws {
        try await conformance("c18_data_is_a_string")
    }

    @Test("C18 refused on public channels, unsubscribed, with another prefix, too large, switched off") func clientEventRefused()
        async throws
    {
        try await conformance("c18_what_is_refused")
    }

    @Test("C18 the eleventh in a second is answered with 4301, and the connection stays") func clientEventRate() async throws {
        try await conformance("c18_rate")
    }

    @Test("C19 socket_id leaves out one connection, on every loop and for each item of a batch") func exclusion() async throws {
        try await conformance("c19_exclusion")
    }

    @Test("C20 event names of any characters") func eventNames() async throws {
        try await conformance("c20_names")
    }

    @Test("C20 data that is no JSON arrives byte for byte") func eventData() async throws {
        try await conformance("c20_data")
    }

    @Test("C20 events of a channel arrive in their order") func order() async throws {
        try await conformance("c20_order")
    }

    @Test("C20 the same channel of two apps is two channels") func apps() async throws {
        try await conformance("c20_apps_are_apart")
    }
}
