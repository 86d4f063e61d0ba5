import HubJSON
import HubTesting
import PusherProtocol
import Testing

@Suite("ClientEvent")
struct ClientEventTests {
    private let parser = JSONParser(capacityBytes: 4096)

    private func parse(_ text: String) -> ClientEvent {
        ClientEvent.parse(Array(text.utf8), with: parser)
    }

    @Test("pings and pongs with any data", arguments: ["", #","data":{}"#, #","data":"""#, #","data":null"#, #","data":"{}""#])
    func pings(data: String) {
        #expect(parse(#"{"event":"pusher:ping"\#(data)}"#) == .ping)
        #expect(parse(#"{"event":"pusher:pong"\#(data)}"#) == .pong)
    }

    @Test(
        "subscribe with data as an object or as a string",
        arguments: [
            (#"{"channel":"a"}"#, "a", nil, nil), (#"{"channel":"a","auth":""}"#, "a", nil, nil),
            (#"{"channel":"a","auth":null,"channel_data":null}"#, "a", nil, nil),
            (#"{"auth":"k:s","channel":"private-a"}"#, "private-a", "k:s", nil),
            (#"{"channel":"presence-a","auth":"k:s","channel_data":"{\"user_id\":\"10\"}"}"#, "presence-a", "k:s", #"{"user_id":"10"}"#),
            (#""{\"channel\":\"a\",\"auth\":\"k:s\"}""#, "a", "k:s", nil), (#"{"channel":"bad name ☃"}"#, "bad name ☃", nil, nil),
            (#"{"channel":"a","channel_data":"Zo\u00eb"}"#, "a", nil, "Zoë"),
        ] as [(String, String, String?, String?)])
    func subscribe(data: String, channel: String, auth: String?, channelData: String?) {
        #expect(
            parse(#"{"event":"pusher:subscribe","data":\#(data)}"#)
                == .subscribe(channel: channel, auth: auth, channelData: channelData))
    }

    @Test("unsubscribe and signin with data as an object or as a string")
    func others() {
        #expect(parse(#"{"event":"pusher:unsubscribe","data":{"channel":"a"}}"#) == .unsubscribe(channel: "a"))
        #expect(parse(#"{"event":"pusher:unsubscribe","data":"{\"channel\":\"a\"}"}"#) == .unsubscribe(channel: "a"))
        let signIn = ClientEvent.signIn(auth: "k:s", userData: #"{"id":"1"}"#)
        #expect(parse(#"{"event":"pusher:signin","data":{"auth":"k:s","user_data":"{\"id\":\"1\"}"}}"#) == signIn)
        #expect(parse(#"{"event":"pusher:signin","data":"{\"auth\":\"k:s\",\"user_data\":\"{\\\"id\\\":\\\"1\\\"}\"}"}"#) == signIn)
    }

    @Test(
        "a client event's data becomes one string literal: strings as sent, other values compactly",
        arguments: [
            (#"{ "x" : 1.0 }"#, #""{\"x\":1.0}""#, 9), (#""{\"x\":1}""#, #""{\"x\":1}""#, 7), (#""a\u0062\/""#, #""a\u0062\/""#, 3),
            ("null", #""null""#, 4), ("[]", #""[]""#, 2), ("7", #""7""#, 1), (#""""#, #""""#, 0),
            (#"{"t":"a\nb"}"#, #""{\"t\":\"a\\nb\"}""#, 12),
        ])
    func client(data: String, literal: String, size: Int) {
        let event = parse(#"{"event":"client-typing","data":\#(data),"channel":"private-a","user_id":"forged"}"#)
        guard case .client(let name, let channel, let parsed) = event else {
            Issue.record("\(event)")
            return
        }
        #expect(name == "client-typing" && channel == "private-a")
        #expect(text(Array(parsed.bytes)) == literal)
        #expect(parsed.contentByteCount == size)
        #expect(parsed.content.utf8.count == size)
    }

    @Test(
        "a client event needs channel and data",
        arguments: [
            #"{"event":"client-a"}"#, #"{"event":"client-a","channel":"private-a"}"#, #"{"event":"client-a","data":{}}"#,
            #"{"event":"client-a","channel":null,"data":{}}"#, #"{"event":"client-a","channel":"","data":{}}"#,
            #"{"event":"client-a","channel":1,"data":{}}"#,
        ])
    func incompleteClient(text: String) {
        #expect(parse(text) == .malformed(reason: "Invalid client event (must contain channel and data)"))
    }

    @Test("a client event's name has at most 200 characters")
    func clientName() {
        let event = { (count: Int) in
            parse(#"{"event":"client-\#(String(repeating: "é", count: count - 7))","channel":"private-a","data":{}}"#)
        }
        if case .client = event(200) {} else { Issue.record("200 refused") }
        if case .malformed = event(201) {} else { Issue.record("201 accepted") }
    }

    @Test(
        "what no client sends is unknown",
        arguments: ["pusher:subscription_error", "pusher_internal:member_added", "message", "", "Client-a", "client"])
    func unknown(name: String) {
        #expect(parse(#"{"event":"\#(name)","channel":"private-a","data":"{}"}"#) == .unknown(name: name))
    }

    @Test(
        "malformed frames are told so",
        arguments: [
            "", "x", "{", "[]", "1", "null", #""pusher:ping""#, "{}", #"{"event":1}"#, #"{"event":null}"#, #"{"data":{}}"#,
            #"[{"event":"pusher:ping"}]"#,
            #"{"event":"pusher:subscribe"}"#, #"{"event":"pusher:subscribe","data":null}"#, #"{"event":"pusher:subscribe","data":[]}"#,
            #"{"event":"pusher:subscribe","data":"{"}"#, #"{"event":"pusher:subscribe","data":"\"x\""}"#,
            #"{"event":"pusher:subscribe","data":{}}"#,
            #"{"event":"pusher:subscribe","data":{"channel":7}}"#, #"{"event":"pusher:subscribe","data":{"channel":"a","auth":7}}"#,
            #"{"event":"pusher:subscribe","data":{"channel":"a","channel_data":{}}}"#, #"{"event":"pusher:subscribe","channel":"a"}"#,
            #"{"event":"pusher:unsubscribe"}"#, #"{"event":"pusher:unsubscribe","data":{"channel":null}}"#, #"{"event":"pusher:signin"}"#,
            #"{"event":"pusher:signin","data":{"auth":"k:s"}}"#, #"{"event":"pusher:signin","data":{"user_data":"{}","auth":null}}"#,
            #"{"event":"pusher:ping"} {"event":"pusher:ping"}"#,
        ])
    func malformed(text: String) {
        guard case .malformed(let reason) = parse(text) else {
            Issue.record("accepted: \(text)")
            return
        }
        #expect(reason.hasPrefix("Invalid "))
    }

    @Test("frames that are too large, too deep or no UTF-8 are malformed")
    func beyondBounds() {
        let cases: [[UInt8]] = [
            Array(#"{"event":"client-a","channel":"private-a","data":"\#(String(repeating: "x", count: 5000))"}"#.utf8),
            Array(#"{"event":"pusher:ping","data":\#(String(repeating: "[", count: 60) + "1" + String(repeating: "]", count: 60))}"#.utf8),
            Array(#"{"event":"pusher:ping","data":""#.utf8) + [0xFF, 0xFE] + Array(#""}"#.utf8), [0, 1, 2, 3],
        ]
        for frame in cases {
            guard case .malformed = ClientEvent.parse(frame, with: parser) else {
                Issue.record("accepted \(frame.count) bytes")
                continue
            }
        }
    }

    @Test("a frame of exactly the parser's capacity and depth is read, one beyond either is malformed")
    func bounds() {
        let small = JSONParser(capacityBytes: 200, depthMax: 32)
        let sized = { (bytes: Int) in
            let frame = #"{"event":"client-a","channel":"private-a","data":""}"#
            return ClientEvent.parse(
                Array(frame.dropLast(2).utf8) + [UInt8](repeating: 0x78, count: bytes - frame.utf8.count) + Array(#""}"#.utf8), with: small)
        }
        if case .client = sized(200) {} else { Issue.record("200 bytes refused") }
        if case .malformed = sized(201) {} else { Issue.record("201 bytes accepted") }
        let nested = { (depth: Int) in
            let data = String(repeating: "[", count: depth) + "1" + String(repeating: "]", count: depth)
            return ClientEvent.parse(Array(#"{"event":"client-a","channel":"private-a","data":\#(data)}"#.utf8), with: small)
        }
        if case .client = nested(31) {} else { Issue.record("depth 32 refused") }
        if case .malformed = nested(32) {} else { Issue.record("depth 33 accepted") }
    }

    private let samples = [
        #"{"event":"pusher:subscribe","data":{"channel":"presence-a","auth":"k:s","channel_data":"{\"user_id\":\"10\"}"}}"#,
        #"{"event":"pusher:subscribe","data":"{\"channel\":\"a\"}"}"#,
        #"{"event":"client-a","channel":"private-a","data":{"x":[1,"\u00e9"]}}"#,
        #"{"event":"pusher:signin","data":{"auth":"k:s","user_data":"{\"id\":\"1\"}"}}"#,
    ]

    @Test("frames cut at any byte are malformed")
    func truncated() {
        for sample in samples {
            for count in 0..<sample.utf8.count {
                guard case .malformed = ClientEvent.parse(Array(sample.utf8.prefix(count)), with: parser) else {
                    Issue.record("accepted \(count) bytes of \(sample)")
                    continue
                }
            }
        }
    }

    @Test("random and damaged frames never crash, and accepted data is always one JSON string")
    func random() {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("ClientEvent random seed: \(seed)")
        var generator = SeededRandom(state: seed)
        let other = JSONParser(capacityBytes: 8192)
        var clientEvents = 0
        for round in 0..<20_000 {
            let frame = round % 4 == 0 ? generator.bytes(upTo: 60) : generator.damage(samples[round % samples.count])
            guard case .client(let name, _, let data) = ClientEvent.parse(frame, with: parser) else { continue }
            clientEvents += 1
            let channel = ChannelName("private-a").map { ServerEvent.event(name: name, channel: $0, data: data) } ?? []
            #expect((try? other.parse(channel))?.find("data")?.stringCount == data.contentByteCount, "seed \(seed)")
        }
        #expect(clientEvents > 100, "seed \(seed)")
    }
}
