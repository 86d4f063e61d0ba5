import HubDefinitions
import Testing

@Suite("ChannelPattern")
struct ChannelPatternTests {
    @Test(
        "names match with their values or not at all",
        arguments: [
            ("presence-game-{session}", "presence-game-7", "7", nil), ("presence-game-{session}", "presence-game-", nil, nil),
            ("presence-game-{session}", "presence-games-7", nil, nil), ("presence-game-{session}", "private-game-7", nil, nil),
            ("presence-game-{session}", "presence-game-a-b.c", "a-b.c", nil), ("presence-game-{session}", "", nil, nil),
            ("presence-game-{session}", "presence-game-a b", nil, nil), ("presence-game-{session}", "presence-game-é", nil, nil),
            ("private-user-{user}", "private-user-ann@x.org", nil, "ann@x.org"),
            ("private-{session}.{user}", "private-a.b", "a", "b"),
            ("private-{session}.{user}", "private-a.b.c", "a", "b.c"), ("private-{session}.{user}", "private-.b", nil, nil),
            ("private-{session}.{user}", "private-a.", nil, nil), ("private-{session}.{user}", "private-ab", nil, nil),
            ("private-{session}-x", "private-a-x", "a", nil), ("private-{session}-x", "private-a-x-x", "a-x", nil),
            ("private-{session}-x", "private--x", nil, nil), ("private-{session}-x", "private-x", nil, nil),
            ("private-{user}--{session}-z", "private-u--s-z", "s", "u"),
            ("private-{user}--{session}-z", "private-u---z", nil, nil),
        ] as [(String, String, String?, String?)])
    func match(pattern: String, name: String, session: String?, user: String?) throws {
        let match = try ChannelPattern(pattern).match(name)
        #expect(match?.session == session)
        #expect(match?.user == user)
        #expect((match != nil) == (session != nil || user != nil))
        if let match { #expect(try ChannelPattern(pattern).channelName(session: match.session, user: match.user) == name) }
    }

    @Test(
        "what is no pattern is refused with the fix",
        arguments: [
            ("", "begin it with private- or presence-"), ("news-{session}", "begin it with"), ("{session}", "begin it with"),
            ("presence{session}", "begin it with"), ("presence-quiz", "it needs {session} or {user}"),
            ("presence-{room}", "unknown placeholder {room}"), ("presence-{session}{user}", "two adjacent placeholders"),
            ("presence-{session}-{session}", "{session} stands twice"), ("presence-{session", "a brace without its partner"),
            ("presence-}{session}", "a brace without its partner"), ("presence-a b-{session}", "cannot be in a channel's name"),
            ("presence-ä-{session}", "cannot be in a channel's name"), ("private-encrypted-{session}", "encrypted"),
            ("presence-" + String(repeating: "a", count: 160) + "{session}", "longer"),
        ])
    func invalid(pattern: String, message: String) {
        let error = #expect(throws: ChannelPattern.Invalid.self) { try ChannelPattern(pattern) }
        #expect(error?.description.contains(message) == true, "\(error?.description ?? "")")
    }

    @Test("a name is built only of what can be in one")
    func build() throws {
        let pattern = try ChannelPattern("private-{session}.{user}")
        #expect(pattern.channelName(session: "s", user: "u") == "private-s.u")
        #expect(pattern.channelName(session: "s", user: nil) == nil)
        #expect(pattern.channelName(session: "", user: "u") == nil)
        #expect(pattern.channelName(session: "s", user: "a b") == nil)
        #expect(pattern.channelName(session: "s", user: "{x}") == nil)
    }
}
