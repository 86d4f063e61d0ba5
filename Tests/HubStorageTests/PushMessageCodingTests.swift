import HubCore
import HubDefinitions
import HubDelivery
import HubJSON
import HubStorage
import StoreTesting
import Testing

@Suite("PushMessageCoding")
struct PushMessageCodingTests {
    @Test("a message is read as it was written, full or bare")
    func roundTrip() throws {
        let full = PushMessage.sample(event: "e1")
        let bare = PushMessage(
            nid: "n", event: "e", kind: .silent, title: nil, body: nil, expiresAt: -1, committedAt: 0, sequence: 7)
        for message in [full, bare] {
            #expect(try PushMessageCoding.decode(PushMessageCoding.encode(message)) == message)
        }
        #expect(
            PushMessageCoding.encode(bare).text
                == #"{"committed_at":0,"event":"e","expires_at":-1,"kind":"silent","nid":"n","policy":"sync","sequence":7,"v":1}"#)
    }

    @Test("messages written one after another are read as they were, whether they share a text or not")
    func writer() throws {
        var writer = PushMessageCoding.Writer()
        for round in 0..<3 {
            // One text more than is looked for.
            for text in 0...PushMessageCoding.Writer.knownMax {
                var message = PushMessage.sample(event: "e1")
                message.nid = "\(round)\"\(text)"
                message.title = "title \(text)"
                var bytes: [UInt8] = []
                let place = writer.write(message, event: "e1")
                writer.texts[place].append(to: &bytes, nid: message.nid)
                let written = try JSONValue(parsing: String(decoding: bytes, as: UTF8.self))
                #expect(written == PushMessageCoding.encode(message))
                #expect(try PushMessageCoding.decode(written) == message)
            }
        }
    }

    @Test("messages that differ in their ids alone have one text, and those of another event have another")
    func sharing() {
        var writer = PushMessageCoding.Writer()
        let places = ["a", "b", "c"].map { user in writer.write(.sample(event: "e1", user: user), event: "e1") }
        #expect(places == [0, 0, 0])
        #expect(writer.write(.sample(event: "e1", user: "d"), event: "e2") == 1)
        #expect(writer.texts.map(\.uses) == [3, 1])
        #expect(writer.texts.allSatisfy { !$0.json.contains("nid") })
    }

    @Test("a policy is kept, and its absence holds nothing visible back", arguments: Policy.allCases)
    func policy(policy: Policy) throws {
        var message = PushMessage.sample(event: "e1")
        message.policy = policy
        var members = try #require(PushMessageCoding.encode(message).objectValue)
        #expect(try PushMessageCoding.decode(.object(members)).policy == policy)
        members["policy"] = nil
        #expect(try PushMessageCoding.decode(.object(members)).policy == .critical)
        members["kind"] = "silent"
        #expect(try PushMessageCoding.decode(.object(members)).policy == .sync)
    }

    @Test("members of a later version are passed over, null is absence")
    func tolerates() throws {
        let message = PushMessage.sample(event: "e1")
        var members = try #require(PushMessageCoding.encode(message).objectValue)
        members["sound_bank"] = ["a": 1]
        members["image"] = .null
        var expected = message
        expected.image = nil
        #expect(try PushMessageCoding.decode(.object(members)) == expected)
    }

    @Test(
        "what cannot be read is named, and its value is not shown",
        arguments: [
            ("v", nil, "`v` is missing"), ("v", 2, "its form is 2"), ("v", 0, "its form is 0"),
            ("v", "1", "`v` has the wrong type"),
            ("nid", nil, "`nid` is missing"), ("nid", 5, "`nid`"), ("event", nil, "`event`"),
            ("kind", "secret", "`kind` is unknown"), ("policy", "secret", "`policy` is unknown"), ("policy", 1, "`policy` has"),
            ("title", ["secret"], "`title`"), ("data", "secret", "`data`"), ("expires_at", "secret", "`expires_at`"),
            ("committed_at", nil, "`committed_at`"), ("sequence", .double(1.5), "`sequence`"),
        ] as [(String, JSONValue?, String)])
    func refuses(member: String, value: JSONValue?, words: String) throws {
        var members = try #require(PushMessageCoding.encode(.sample(event: "e1")).objectValue)
        members[member] = value
        let error = #expect(throws: StorageError.self) { try PushMessageCoding.decode(.object(members)) }
        #expect(error?.code == .unreadableRow)
        #expect(error?.message.contains(words) == true)
        #expect(error?.message.contains("secret") == false)
    }

    @Test("something else than an object is refused", arguments: [.null, [], "x", 1] as [JSONValue])
    func refusesOthers(value: JSONValue) {
        #expect(throws: StorageError.self) { try PushMessageCoding.decode(value) }
    }
}
