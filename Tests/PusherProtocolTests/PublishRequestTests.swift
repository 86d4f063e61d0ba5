import HubCore
import HubJSON
import HubTesting
import PusherProtocol
import Testing

@Suite("PublishRequest")
struct PublishRequestTests {
    private let limits = PublishLimits()
    private let parser: JSONParser

    init() {
        parser = JSONParser(capacityBytes: max(limits.eventBodyBytesMax, limits.batchBodyBytesMax))
    }

    private func event(_ body: String) throws(PublishError) -> PublishRequest {
        try PublishRequest.parse(event: Array(body.utf8), limits: limits, with: parser)
    }

    private func batch(_ body: String) throws(PublishError) -> [PublishRequest] {
        try PublishRequest.parse(batch: Array(body.utf8), limits: limits, with: parser)
    }

    @Test("a full event is read, its data byte for byte")
    func full() throws {
        let request = try event(
            #"{"info":"user_count, cache","tags":{"a":1},"name":"App\\Events\\X","data":"{\"a\":\"\u00eb\\\/\"}","channels":["c1","presence-c2","c1"],"socket_id":"1.2"}"#
        )
        #expect(request.name == #"App\Events\X"#)
        #expect(request.channels.map(\.text) == ["c1", "presence-c2"])
        #expect(text(Array(request.data.bytes)) == #""{\"a\":\"\u00eb\\\/\"}""#)
        #expect(request.data.contentByteCount == 12)
        #expect(request.data.content == #"{"a":"ë\/"}"#)
        #expect(request.excludedSocketID == SocketID(first: 1, second: 2))
        #expect(request.attributes == [.userCount, .cache])
    }

    @Test(
        "the forms of the official libraries are read",
        arguments: [
            #"{"name":"e","data":"{}","channel":"a"}"#, #"{"name":"e","data":"{}","channels":["a"],"socket_id":null,"info":null}"#,
            #"{"name":"e","data":"{}","channels":null,"channel":"a","info":""}"#,
            #"{"name":"e","data":"{}","channels":["a"],"channel":"ignored name"}"#,
        ])
    func forms(body: String) throws {
        let request = try event(body)
        #expect(request == PublishRequest(name: "e", channels: [try #require(ChannelName("a"))], data: DataLiteral(content: "{}")))
    }

    @Test(
        "data that is no string is serialised compactly into one",
        arguments: [
            (#"{ "a" : [ 1.0 , "x y" ] }"#, #"{"a":[1.0,"x y"]}"#), ("null", "null"), ("17", "17"), ("[ ]", "[]"), ("true", "true"),
            (#""""#, ""),
        ])
    func otherData(json: String, content: String) throws {
        let data = try event(#"{"name":"e","channel":"a","data":\#(json)}"#).data
        #expect(data.content == content)
        #expect(data.contentByteCount == content.utf8.count)
    }

    @Test("server-to-user channels may be published to, and a socket id of nobody's excludes nobody")
    func targets() throws {
        #expect(try event(##"{"name":"e","data":"","channel":"#server-to-user-12345"}"##).channels[0].userID == "12345")
        #expect(try event(#"{"name":"e","data":"","channel":"a","socket_id":"99999999999999999999.1"}"#).excludedSocketID == nil)
        #expect(try event(#"{"name":"client-e","data":"","channel":"a"}"#).name == "client-e")
    }

    @Test(
        "what breaks a rule is refused with the member's name",
        arguments: [
            ("", "JSON"), ("{", "JSON"), ("[]", "object"), ("null", "object"), (#"{"data":"","channel":"a"}"#, "name is missing"),
            (#"{"name":"","data":"","channel":"a"}"#, "name is missing"), (#"{"name":1,"data":"","channel":"a"}"#, "name is missing"),
            (#"{"name":"\#(String(repeating: "é", count: 201))","data":"","channel":"a"}"#, "name has more than 200"),
            (#"{"name":"pusher:x","data":"","channel":"a"}"#, "name begins with"),
            (#"{"name":"pusher_internal:x","data":"","channel":"a"}"#, "name begins with"),
            // An accent on the colon makes it another character to Swift, and the same byte to every client.
            ("{\"name\":\"pusher:\u{301}x\",\"data\":\"\",\"channel\":\"a\"}", "name begins with"),
            (#"{"name":"e","channel":"a"}"#, "data is missing"), (#"{"name":"e","data":""}"#, "channels is missing"),
            (#"{"name":"e","data":"","channels":"a"}"#, "channels must be an array"),
            (#"{"name":"e","data":"","channels":[]}"#, "channels is empty"),
            (#"{"name":"e","data":"","channels":["a",1]}"#, "channels[1] must be a string"),
            (#"{"name":"e","data":"","channels":["a","b c"]}"#, "channels[1] 'b c'"),
            (#"{"name":"e","data":"","channel":7}"#, "channel must be a string"), (#"{"name":"e","data":"","channel":""}"#, "channel ''"),
            (##"{"name":"e","data":"","channel":"#other"}"##, "channel '#other'"),
            (#"{"name":"e","data":"","channel":"a","socket_id":"x"}"#, "socket_id"),
            (#"{"name":"e","data":"","channel":"a","socket_id":""}"#, "socket_id"),
            (#"{"name":"e","data":"","channel":"a","socket_id":1.2}"#, "socket_id"),
            (#"{"name":"e","data":"","channel":"a","info":"users"}"#, "info"),
            (#"{"name":"e","data":"","channel":"a","info":["user_count"]}"#, "info"),
        ])
    func refusals(body: String, part: String) {
        #expect { try event(body) } throws: { error in
            guard let error = error as? PublishError else { return false }
            return error.status == 400 && error.message.contains(part)
        }
    }

    @Test("10240 bytes of data are accepted however they are escaped, 10241 are 413")
    func dataSize() throws {
        for unit in ["x", #"\n"#, #"\u0001"#] {
            let body = { (count: Int) in #"{"name":"e","channel":"a","data":"\#(String(repeating: unit, count: count))"}"# }
            #expect(try event(body(10_240)).data.contentByteCount == 10_240)
            #expect { try event(body(10_241)) } throws: {
                ($0 as? PublishError)?.status == 413
                    && "\($0)".hasPrefix("The data content of this event exceeds the allowed maximum (10240 bytes)")
            }
        }
        let array = { (count: Int) in
            #"{"name":"e","channel":"a","data":[\#(String(repeating: " ", count: 100))"\#(String(repeating: "x", count: count))"]}"#
        }
        #expect(try event(array(10_236)).data.contentByteCount == 10_240)
        #expect { try event(array(10_237)) } throws: { ($0 as? PublishError)?.status == 413 }
        var wider = limits
        wider.eventDataBytesMax = 20_000
        let body = Array(#"{"name":"e","channel":"a","data":"\#(String(repeating: "x", count: 20_000))"}"#.utf8)
        #expect(try PublishRequest.parse(event: body, limits: wider, with: parser).data.contentByteCount == 20_000)
    }

    @Test("a body beyond the parser's capacity is 413")
    func bodySize() {
        let body = [UInt8](repeating: 0x20, count: parser.capacityBytes + 1)
        #expect { try PublishRequest.parse(event: body, limits: limits, with: parser) } throws: { ($0 as? PublishError)?.status == 413 }
        #expect { try PublishRequest.parse(batch: body, limits: limits, with: parser) } throws: { ($0 as? PublishError)?.status == 413 }
    }

    @Test("100 channels are accepted, 101 are not, repeated ones included")
    func channelCount() throws {
        let body = { (names: [String]) in
            #"{"name":"e","data":"","channels":[\#(names.map { "\"\($0)\"" }.joined(separator: ","))]}"#
        }
        #expect(try event(body((0..<100).map { "c\($0)" })).channels.count == 100)
        #expect { try event(body((0..<101).map { "c\($0)" })) } throws: { ($0 as? PublishError)?.status == 400 && "\($0)".contains("100") }
        #expect(throws: PublishError.self) { try event(body([String](repeating: "a", count: 101))) }
    }

    @Test("names of 200 characters are accepted, of 201 refused, for events and channels")
    func nameLengths() throws {
        let body = { (name: Int, channel: Int) in
            #"{"name":"\#(String(repeating: "é", count: name))","data":"","channel":"\#(String(repeating: "c", count: channel))"}"#
        }
        let request = try event(body(200, 200))
        #expect(request.name.count == 200 && request.channels.map(\.text.count) == [200])
        #expect { try event(body(201, 200)) } throws: {
            ($0 as? PublishError)?.status == 400 && "\($0)".hasPrefix("name has more than 200")
        }
        #expect { try event(body(200, 201)) } throws: { ($0 as? PublishError)?.status == 400 && "\($0)".hasPrefix("channel 'ccc") }
    }

    @Test("a body nests 32 deep, its own object included, and no deeper")
    func depth() throws {
        let nested = { (depth: Int) in String(repeating: "[", count: depth) + "1" + String(repeating: "]", count: depth) }
        let one = { (data: Int) in #"{"name":"e","channel":"a","data":\#(nested(data))}"# }
        #expect(try event(one(31)).data.content == nested(31))
        #expect { try event(one(32)) } throws: { ($0 as? PublishError)?.status == 400 && "\($0)".contains("nested too deeply") }
        // Around an item of a batch stand two more: the array and the batch itself.
        let many = { (data: Int) in #"{"batch":[\#(one(data))]}"# }
        #expect(try batch(many(29))[0].data.content == nested(29))
        #expect { try batch(many(30)) } throws: { ($0 as? PublishError)?.status == 400 && "\($0)".contains("nested too deeply") }
    }

    @Test("10 items of a batch are accepted, 11 are not")
    func batchCount() throws {
        let body = { (count: Int) in
            #"{"batch":[\#([String](repeating: #"{"channel":"a","name":"e","data":""}"#, count: count).joined(separator: ","))]}"#
        }
        #expect(try batch(body(10)).count == 10)
        #expect { try batch(body(11)) } throws: { ($0 as? PublishError)?.status == 400 && "\($0)".contains("batch has 11 events") }
    }

    @Test("the largest bodies within the limits fit the sizes computed from them")
    func bodyBounds() throws {
        let escaped = { (count: Int) in String(repeating: #"\u0001"#, count: count) }
        let channels = (0..<100).map { "\"" + String(repeating: "c", count: 197) + "\(100 + $0)\"" }.joined(separator: ",")
        let one = #"{"name":"\#(escaped(200))","data":"\#(escaped(10_240))","channels":[\#(channels)]}"#
        #expect(one.utf8.count <= limits.eventBodyBytesMax)
        #expect(try event(one).channels.count == 100)
        let item = #"{"name":"\#(escaped(200))","data":"\#(escaped(10_240))","channel":"\#(String(repeating: "c", count: 200))"}"#
        let ten = #"{"batch":[\#([String](repeating: item, count: 10).joined(separator: ","))]}"#
        #expect(ten.utf8.count <= limits.batchBodyBytesMax)
        #expect(try batch(ten).count == 10)
    }

    @Test("a batch is read in order, each item with its own data")
    func batchOrder() throws {
        let requests = try batch(
            #"{"batch":[{"channel":"a","name":"e","data":"{\"n\":1}"}, {"data":"two","channel":"presence-b","name":"f","info":"user_count","socket_id":"1.2"},{"channel":"a","name":"g","data":{"n": 3}}]}"#
        )
        #expect(requests.map(\.name) == ["e", "f", "g"])
        #expect(requests.map(\.data.content) == [#"{"n":1}"#, "two", #"{"n":3}"#])
        #expect(requests.map { $0.channels.map(\.text) } == [["a"], ["presence-b"], ["a"]])
        #expect(requests[1].attributes == .userCount && requests[1].excludedSocketID != nil && requests[0].excludedSocketID == nil)
    }

    @Test(
        "one bad item refuses the batch and is named",
        arguments: [
            ("{}", 400, "batch is missing"), (#"{"batch":{}}"#, 400, "batch is missing"), (#"{"batch":[]}"#, 400, "batch has 0 events"),
            (#"{"batch":[{"channel":"a","name":"e","data":""},7]}"#, 400, "batch[1] must be an object"),
            (#"{"batch":[{"channel":"a","name":"e","data":""},{"channel":"a","name":"e"}]}"#, 400, "batch[1].data is missing"),
            (#"{"batch":[{"channels":["a"],"name":"e","data":""}]}"#, 400, "batch[0].channel is missing"),
            (#"{"batch":[{"channel":"a b","name":"e","data":""}]}"#, 400, "batch[0].channel 'a b'"),
            (#"{"batch":[{"channel":"a","name":"pusher:e","data":""}]}"#, 400, "batch[0].name"),
            (#"{"batch":[{"channel":"a","name":"e","data":"\#(String(repeating: "x", count: 10_241))"}]}"#, 413, "batch[0].data"),
            (
                #"{"batch":[\#([String](repeating: #"{"channel":"a","name":"e","data":""}"#, count: 11).joined(separator: ","))]}"#, 400,
                "batch has 11 events"
            ),
        ])
    func badBatches(body: String, status: Int, part: String) {
        #expect { try batch(body) } throws: { ($0 as? PublishError)?.status == status && "\($0)".contains(part) }
    }

    @Test("the deprecated form takes any text as data, within the limit, and nothing that is no text")
    func deprecatedForm() throws {
        let channel = try #require(ChannelName("c"))
        func parse(_ data: [UInt8], name: String? = "n", socketID: String? = nil) throws -> PublishRequest {
            try PublishRequest.parse(name: name, socketID: socketID, data: data, channel: channel, limits: limits)
        }
        for content in ["", "{\"a\": \"\u{e9}\"}\n", "\u{0}\"\\", String(repeating: "\u{e9}", count: 5_120)] {
            #expect(try parse(Array(content.utf8)).data.content == content)
        }
        #expect(try parse([], socketID: "7.8").excludedSocketID == SocketID("7.8"))
        for (data, name, socketID, status) in [
            ([0xC3], "n", nil, 400), ([0xED, 0xA0, 0x80], "n", nil, 400), (Array(repeating: 0x78, count: 10_241), "n", nil, 413),
            ([], nil, nil, 400),
            ([], "", nil, 400), ([], "pusher:n", nil, 400), ([], "n", "7", 400), ([], "n", "", 400),
        ] as [([UInt8], String?, String?, Int)] {
            #expect { try parse(data, name: name, socketID: socketID) } throws: { ($0 as? PublishError)?.status == status }
        }
    }

    @Test("an idempotency key is a string of a single event")
    func idempotencyKeys() throws {
        func key(_ member: String) throws -> String? {
            let body = Array("{\"name\":\"e\",\"channel\":\"a\",\"data\":\"\"\(member)}".utf8)
            return try PublishRequest.parse(event: body, limits: limits, with: parser).idempotencyKey
        }
        #expect(try key("") == nil && key(#","idempotency_key":null"#) == nil && key(#","idempotency_key":"k\u0041""#) == "kA")
        for value in ["1", "[]", "true", "{}"] {
            #expect { try key(#","idempotency_key":\#(value)"#) } throws: { "\($0)" == "idempotency_key must be a string" }
        }
    }

    @Test("deliver_at is milliseconds or a time with its zone, of an event or of a batch's items")
    func deliveryTimes() throws {
        func time(_ value: String) throws(PublishError) -> Int64? {
            try event(#"{"name":"n","channel":"c","data":"d","deliver_at":\#(value)}"#).deliverAt
        }
        #expect(try time("null") == nil && time("0") == 0 && time("1767920400250") == 1_767_920_400_250)
        #expect(try time(#""1767920400250""#) == 1_767_920_400_250 && time("9223372036854775807") == .max)
        #expect(
            try time(#""2026-01-09T01:00:00.25Z""#) == 1_767_920_400_250 && time(#""2026-01-09T02:00:00.250+01:00""#) == 1_767_920_400_250)
        #expect(try event(#"{"name":"n","channel":"c","data":"d"}"#).deliverAt == nil)
        for value in [
            "-1", "1.5", "1e3", "9223372036854775808", "true", "[]", "{}", #""""#, #""tomorrow""#, #""2026-01-09T01:00:00""#, #""-5""#,
        ] {
            #expect { try time(value) } throws: { error in
                "\(error)".hasPrefix("deliver_at must be milliseconds since 1970, such as") && (error as? PublishError)?.status == 400
            }
        }
        let items = try batch(
            #"{"batch":[{"name":"n","channel":"c","data":"d"},{"name":"n","channel":"c","data":"d","deliver_at":7}]}"#)
        #expect(items.map(\.deliverAt) == [nil, 7])
        #expect { try batch(#"{"batch":[{"name":"n","channel":"c","data":"d","deliver_at":"soon"}]}"#) } throws: { error in
            "\(error)".hasPrefix("batch[0].deliver_at must be")
        }
    }

    @Test("dry_run is true or false, of a single event alone")
    func dryRuns() throws {
        func isDryRun(_ value: String) throws(PublishError) -> Bool {
            try event(#"{"name":"n","channel":"c","data":"d","dry_run":\#(value)}"#).isDryRun
        }
        #expect(try isDryRun("true") && !isDryRun("false") && !isDryRun("null"))
        #expect(try !event(#"{"name":"n","channel":"c","data":"d"}"#).isDryRun)
        for value in ["1", #""true""#, "[]", "{}"] {
            #expect { try isDryRun(value) } throws: { "\($0)" == "dry_run must be true or false" }
        }
        func item(_ value: String) -> String { #"{"batch":[{"name":"n","channel":"c","data":"d","dry_run":\#(value)}]}"# }
        #expect(try batch(item("false")).count == 1)
        #expect { try batch(item("true")) } throws: { "\($0)".hasPrefix("batch[0].dry_run is for one event") }
    }

    @Test("truncated, damaged and random bodies never crash, and accepted data is always one JSON string")
    func random() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("PublishRequest random seed: \(seed)")
        var generator = SeededRandom(state: seed)
        let one = #"{"name":"e","data":{"x":"\u00e9"},"channels":["a","b"],"socket_id":"1.2","info":"user_count"}"#
        let many = #"{"batch":[{"name":"e","data":"{\"a\":1}","channel":"a"},{"name":"f","data":[1,2],"channel":"b"}]}"#
        for sample in [one, many] {
            for count in 0..<sample.utf8.count {
                let body = Array(sample.utf8.prefix(count))
                #expect(throws: PublishError.self) { try PublishRequest.parse(event: body, limits: limits, with: parser) }
                #expect(throws: PublishError.self) { try PublishRequest.parse(batch: body, limits: limits, with: parser) }
            }
        }
        var accepted = 0
        for round in 0..<20_000 {
            let body = round % 5 == 0 ? generator.bytes(upTo: 60) : generator.damage(round % 2 == 0 ? one : many)
            var requests = (try? PublishRequest.parse(batch: body, limits: limits, with: parser)) ?? []
            if let request = try? PublishRequest.parse(event: body, limits: limits, with: parser) { requests.append(request) }
            accepted += requests.count
            for request in requests {
                let frame = ServerEvent.event(name: request.name, channel: request.channels[0], data: request.data)
                #expect(try JSONValue(parsing: frame)["data"]?.stringValue == request.data.content, "seed \(seed)")
            }
        }
        #expect(accepted > 100, "seed \(seed)")
    }
}
