import HubCore
import HubDemo
import HubJSON
import Testing

@Suite("Stage") struct StageTests {
    private var stage = Stage(cast: Cast())

    private mutating func ask(at now: Int64) throws -> Int {
        let number = stage.ask(at: now)
        return try #require(number)
    }

    private func phone(_ id: String) throws -> Cast.Phone { try #require(stage.cast.phone(id)) }

    private func note(_ number: Int, nid: String = "n") throws -> GatewayNews {
        let body: JSONValue = [
            "aps": ["alert": ["title": "T", "body": "B"]], "nid": .string(nid), "number": .string(String(number)), "type": "question",
        ]
        return try #require(GatewayNews(body: body, at: 0))
    }

    private func notes(_ id: String) -> [JSONValue] {
        let phones = stage.snapshot(at: 0)["phones"]?.arrayValue ?? []
        return phones.first { $0["id"]?.stringValue == id }?["notes"]?.arrayValue ?? []
    }

    private func person(_ user: String, at now: Int64 = 0) -> JSONValue? {
        stage.snapshot(at: now)["questions"]?.arrayValue?.last?["people"]?[user]
    }

    @Test("a question that all read live is told once to each person, however many phones they have")
    mutating func live() throws {
        stage.became(.up, at: 0)
        let number = try ask(at: 100)
        for phone in stage.cast.phones { stage.read(number, Telling.Reading(phone: phone.id, at: 110, isLive: true)) }
        #expect(stage.score(at: 60_000) == Score(told: 3))
        #expect(person("ana")?["after_ms"]?.intValue == 10)
    }

    @Test("a phone that rings for something on its screen has told twice, whichever came first")
    mutating func twice() throws {
        let number = try ask(at: 0)
        stage.read(number, Telling.Reading(phone: "ben", at: 5, isLive: true))
        stage.accepted(try note(number), for: try phone("ben"), at: 25_000)
        #expect(stage.score(at: 25_000).toldTwice == 1)

        let next = try ask(at: 30_000)
        stage.accepted(try note(next), for: try phone("ana"), at: 30_010)
        stage.read(next, Telling.Reading(phone: "ana", at: 30_020, isLive: true))
        #expect(stage.score(at: 30_020).toldTwice == 2)
    }

    @Test("reading what a notification had announced is no second telling, and takes the notification away")
    mutating func later() throws {
        let number = try ask(at: 0)
        stage.accepted(try note(number), for: try phone("ana"), at: 20)
        #expect(notes("ana").count == 1)
        stage.read(number, Telling.Reading(phone: "ana", at: 3000, isLive: false))
        #expect(stage.score(at: 3000).toldTwice == 0)
        #expect(stage.score(at: 3000).told == 1)
        #expect(notes("ana").isEmpty)
    }

    @Test("a notification after a missed question was read has told twice")
    mutating func overtaken() throws {
        let number = try ask(at: 0)
        stage.read(number, Telling.Reading(phone: "ana", at: 3000, isLive: false))
        stage.accepted(try note(number), for: try phone("ana"), at: 3100)
        #expect(stage.score(at: 3100).toldTwice == 1)
    }

    @Test("without a network the gateway keeps the notification, and nobody is told before the phone is back")
    mutating func airplane() throws {
        stage.became(.up, at: 0)
        let number = try ask(at: 0)
        stage.network(of: "ana", is: .silent, at: 0)
        stage.accepted(try note(number), for: try phone("ana"), at: 2000)
        #expect(person("ana")?["surface"]?.stringValue == "kept")
        #expect(notes("ana").first?["kept"]?.boolValue == true)
        #expect(stage.score(at: 60_000) == Score(missed: 2, underWay: 1))
        stage.network(of: "ana", is: .open, at: 5000)
        #expect(person("ana")?["surface"]?.stringValue == "lock")
        #expect(person("ana")?["after_ms"]?.intValue == 5000)
        #expect(notes("ana").first?["kept"]?.boolValue == false)
        stage.network(of: "ana", is: .open, at: 6000)
        #expect(person("ana")?["shown_on"]?.arrayValue?.count == 1)
    }

    @Test("the hub's clear takes the notification of this id away, and no other")
    mutating func clear() throws {
        let number = try ask(at: 0)
        stage.accepted(try note(number, nid: "a"), for: try phone("cleo-2"), at: 20)
        stage.accepted(try note(try ask(at: 30), nid: "b"), for: try phone("cleo-2"), at: 40)
        let clear: JSONValue = ["message": ["data": ["type": "clear", "clear": "a", "nid": "c"]]]
        stage.accepted(try #require(GatewayNews(body: clear, at: 50)), for: try phone("cleo-2"), at: 50)
        #expect(notes("cleo-2").map { $0["nid"]?.stringValue } == ["b"])
    }

    @Test("people are missed when their time is up, and time does not run while the hub is down")
    mutating func missed() throws {
        stage.became(.up, at: 0)
        let number = try ask(at: 1000)
        let end = 1000 + Stage.tellMilliseconds
        #expect(stage.score(at: end - 1) == Score(underWay: 3))
        #expect(stage.score(at: end) == Score(missed: 3))
        stage.became(.down, at: 2000)
        #expect(stage.score(at: end) == Score(underWay: 3))
        stage.became(.up, at: 50_000)
        #expect(stage.score(at: 50_000 + Stage.tellMilliseconds - 1) == Score(underWay: 3))
        #expect(stage.score(at: 50_000 + Stage.tellMilliseconds) == Score(missed: 3))
        stage.read(number, Telling.Reading(phone: "ben", at: 70_000, isLive: false))
        #expect(stage.score(at: 70_000) == Score(told: 1, missed: 2))
    }

    @Test(
        "what is neither a notification of a question nor a clear is no news",
        arguments: [
            #"{}"#, #"{"message":{"data":{"nid":"n","number":"1"}}}"#, #"{"aps":{"content-available":1},"nid":"n","number":"1"}"#,
            #"{"aps":{"alert":{"title":"T"}},"nid":"n"}"#, #"{"aps":{"alert":{"title":"T"}},"number":"1"}"#,
        ])
    func noNews(text: String) throws {
        #expect(GatewayNews(body: try JSONValue(parsing: text), at: 0) == nil)
    }

    @Test("FCM's notification is read as APNs'")
    func fcm() throws {
        let body: JSONValue = [
            "message": ["notification": ["title": "T", "body": "B"], "data": ["nid": "n", "number": "7", "type": "question"]]
        ]
        guard case .note(let note) = try #require(GatewayNews(body: body, at: 9)) else {
            Issue.record("no notification")
            return
        }
        #expect(note.nid == "n" && note.number == 7 && note.title == "T" && note.body == "B" && note.acceptedAt == 9)
    }

    @Test("only so many questions wait for a hub that is down")
    mutating func waiting() throws {
        for _ in 0..<Stage.unpublishedMax { _ = try ask(at: 0) }
        #expect(stage.ask(at: 0) == nil)
        stage.published(1, event: "e", at: 1)
        #expect(stage.ask(at: 2) != nil)
    }

    @Test("a hub that ends by itself is down, and one that is about to start is not")
    mutating func ended() {
        stage.became(.starting, at: 0)
        stage.ended(at: 1)
        #expect(stage.hub == .starting)
        stage.became(.up, at: 2)
        stage.ended(at: 3)
        #expect(stage.hub == .down)
    }

    @Test("a lock screen has a bounded number of notifications, the newest")
    mutating func crowded() throws {
        let number = try ask(at: 0)
        for index in 0...Stage.notesMax { stage.accepted(try note(number, nid: "n\(index)"), for: try phone("ana"), at: 20) }
        #expect(notes("ana").count == Stage.notesMax)
        #expect(notes("ana").first?["nid"] == "n1" && notes("ana").last?["nid"] == .string("n\(Stage.notesMax)"))
    }

    @Test("trails are asked for until they end to matter")
    mutating func trails() throws {
        let first = try ask(at: 0)
        #expect(stage.openTrails(at: 0, everySecond: true).isEmpty)
        stage.published(first, event: "e1", at: 10)
        stage.published(try ask(at: 4000), event: "e2", at: 4010)
        #expect(stage.openTrails(at: 4500, everySecond: false).map(\.event) == ["e2", "e1"])
        #expect(stage.openTrails(at: 8000, everySecond: false).map(\.event) == ["e2"])
        #expect(stage.openTrails(at: 8000, everySecond: true).map(\.event) == ["e2", "e1"])
        #expect(stage.openTrails(at: 400_000, everySecond: true).isEmpty)
    }
}

extension Score {
    init(told: Int = 0, toldTwice: Int = 0, missed: Int = 0, underWay: Int = 0) {
        self.init()
        self.told = told
        self.toldTwice = toldTwice
        self.missed = missed
        self.underWay = underWay
    }
}
