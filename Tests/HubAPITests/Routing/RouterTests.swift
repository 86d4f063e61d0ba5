import HubCore
import HubDelivery
import HubTesting
import PusherProtocol
import Testing

@testable import HubAPI

@Suite("The signed API")
struct RouterTests {
    static let event = #"{"name":"n","channel":"room","data":"d"}"#

    @Test("is ready, not ready while the store fails, and answers everything but health with 503 while it ends")
    func readiness() async throws {
        let stage = try RouterStage()
        func status(_ method: String, _ path: String) async throws -> Int {
            try await stage.send(method, path, method == "POST" ? Self.event : "").status
        }
        #expect(try await stage.send("GET", "//ready").json == ["ready": true])
        stage.life.set(refusal: "the store takes no writes")
        let refusal = try await stage.send("GET", "//ready")
        #expect(refusal.status == 503 && refusal.error == "the store takes no writes" && refusal[header: "Retry-After"] == "1")
        #expect(try await status("POST", "/events") == 200, "what needs no store goes on")
        stage.life.set(refusal: "ending", isClosing: true)
        for (method, path) in [
            ("POST", "/events"), ("GET", "/channels"), ("POST", "//pusher/auth"), ("GET", "//metrics"), ("GET", "//ready"),
        ] {
            let refusal = try await stage.send(method, path, method == "POST" ? Self.event : "")
            #expect(refusal.status == 503 && refusal.error == "the server is shutting down: send new work to another one", "\(path)")
        }
        #expect(try await status("GET", "//health") == 200)
    }

    @Test("answers every refusal with its status and a sentence in JSON")
    func refusals() async throws {
        let stage = try RouterStage()
        let batch = { (count: Int) in
            "{\"batch\":[" + Array(repeating: Self.event, count: count).joined(separator: ",") + "]}"
        }
        let channels = { (count: Int) in
            "{\"name\":\"n\",\"data\":\"d\",\"channels\":[" + (0..<count).map { "\"c\($0)\"" }.joined(separator: ",") + "]}"
        }
        let data = { (count: Int) in "{\"name\":\"n\",\"channel\":\"c\",\"data\":\"\(String(repeating: "x", count: count))\"}" }
        for (method, path, body, status, word) in [
            ("POST", "/events", "", 400, "JSON"), ("POST", "/events", "[]", 400, "object"), ("POST", "/events", "{", 400, "JSON"),
            ("POST", "/events", "{}", 400, "channels"), ("POST", "/events", #"{"channel":"c","data":"d"}"#, 400, "name"),
            ("POST", "/events", #"{"name":"n","channel":"c"}"#, 400, "data"),
            ("POST", "/events", #"{"name":"n","data":"d"}"#, 400, "channels"),
            ("POST", "/events", #"{"name":"n","channel":"bad name","data":"d"}"#, 400, "bad name"),
            ("POST", "/events", #"{"name":"pusher:x","channel":"c","data":"d"}"#, 400, "reserved"),
            ("POST", "/events", #"{"name":"n","channel":"c","data":"d","socket_id":"1"}"#, 400, "socket_id"),
            ("POST", "/events", #"{"name":"n","channel":"c","data":"d","info":"colour"}"#, 400, "colour"),
            ("POST", "/events", channels(101), 400, "100"), ("POST", "/events", channels(100), 200, ""),
            ("POST", "/events", data(10_241), 413, "10240"), ("POST", "/events", data(10_240), 200, ""),
            ("POST", "/batch_events", batch(11), 400, "10"), ("POST", "/batch_events", batch(10), 200, ""),
            ("POST", "/batch_events", "{}", 400, "batch"), ("POST", "/batch_events", #"{"batch":[]}"#, 400, "1 to 10"),
            ("POST", "/batch_events", #"{"batch":[{"name":"n","channel":"c"}]}"#, 400, "batch[0].data"),
            ("GET", "/channels/bad%20name", "", 400, "not allowed"), ("GET", "/channels/room/nothing", "", 404, "/users"),
            ("GET", "/channels/room/users", "", 400, "presence"), ("GET", "/nothing", "", 404, "/nothing"), ("GET", "", "", 404, "/apps/1"),
            ("GET", "//apps/1/channels/room/users/x", "", 404, "nothing at"), ("GET", "//apps", "", 404, "nothing at"),
            ("GET", "//", "", 404, "nothing at"),
        ] as [(String, String, String, Int, String)] {
            let response = try await stage.send(method, path.replacing("%20", with: " "), body)
            #expect(response.status == status, "\(method) \(path) \(body.prefix(80)): \(response.text.prefix(200))")
            #expect(response.contentType == "application/json" && !response.body.isEmpty)
            if status != 200 { #expect(response.error.contains(word), "\(method) \(path) \(body.prefix(80)): \(response.text)") }
        }
    }

    @Test("says which methods a route has")
    func methods() async throws {
        let stage = try RouterStage()
        for (method, path, allowed) in [
            ("PUT", "/events", "GET, HEAD, POST"), ("GET", "/batch_events", "POST"), ("HEAD", "/batch_events", "POST"),
            ("PUT", "/batch_events", "POST"), ("POST", "/channels", "GET, HEAD"),
            ("DELETE", "/channels/room", "GET, HEAD"), ("POST", "/channels/presence-room/users", "GET, HEAD"),
            ("POST", "/channels/room/stats", "GET, HEAD"), ("GET", "/channels/room/events", "POST"), ("POST", "/connections", "GET, HEAD"),
            ("OPTIONS", "/events", "GET, HEAD, POST"),
        ] {
            let response = try await stage.send(method, path)
            #expect(response.status == 405 && response[header: "Allow"] == allowed, "\(method) \(path): \(response.text)")
            #expect(response.error.contains(method) && response.error.contains(allowed))
        }
        let known = try await stage.send("POST", "/sessions/s1")
        #expect(known.status == 405 && known[header: "Allow"]?.contains("GET") == true)
    }

    @Test("tells apart who may not and who is not known")
    func authentication() async throws {
        let stage = try RouterStage()
        for (app, sign, status, word) in [
            ("1", false, 401, "Missing parameter: auth_key"), ("9", true, 404, "no app"), ("3", true, 403, "disabled"),
            ("3", false, 401, "auth_key"),
        ] {
            let response = try await stage.send("GET", "/channels", app: app, sign: sign)
            #expect(response.status == status && response.error.contains(word), "\(app) \(sign): \(response.text)")
        }
        // The key of another app is no key here.
        let query = RequestAuth.signedQuery(
            method: "GET", path: "/apps/2/channels", key: "alpha-key", secret: "alpha-secret", nowSeconds: stage.clock.wallSeconds)
        let foreign = try await stage.send("GET", "/channels", query: query, app: "2", sign: false)
        #expect(foreign.status == 401 && foreign.error == "Unknown auth_key")
        stage.clock.advance(seconds: 600)
        let old = try await stage.send(
            "GET", "/channels",
            query: RequestAuth.signedQuery(
                method: "GET", path: "/apps/1/channels", key: "alpha-key", secret: "alpha-secret", nowSeconds: stage.clock.wallSeconds - 600
            ),
            sign: false)
        #expect(old.status == 401 && old.error.hasPrefix("Timestamp expired: Given timestamp ("))
    }

    @Test("publishes at /apps/{app}/events, behind a proxy's prefix too, and at no path that looks like it")
    func publishingPath() async throws {
        let stage = try RouterStage()
        let body = #"{"name":"n","channel":"room","data":"d"}"#
        for (path, status) in [
            ("//apps/1/events", 200), ("//prefix/apps/1/events", 200), ("//apps/1/events/", 200), ("//apps//1//events", 200),
            ("//apps/1/sessions/events", 405),
            ("//apps/1/eventsx", 404), ("//apps/events", 404), ("//apps//events", 404), ("//apps/1events", 404), ("//apps/01/events", 404),
            ("//apps/1/x/events", 404), ("//Apps/1/events", 404),
        ] {
            let before = stage.publications
            let response = try await stage.send("POST", path, body)
            #expect(
                response.status == status && stage.publications == before + (status == 200 ? 1 : 0),
                "\(path): \(response.status) \(response.text)")
        }
    }

    @Test("answers a HEAD as the GET")
    func head() async throws {
        let stage = try RouterStage()
        for path in [
            "/channels", "/channels/room", "/channels/room/stats", "/channels/presence-room/users", "/connections", "/users/u/devices",
        ] {
            let (get, head) = (try await stage.send("GET", path), try await stage.send("HEAD", path))
            #expect(get.status == 200 && head.status == 200 && head.body == get.body, "\(path): \(get.text) \(head.text)")
        }
    }

    @Test("has objects where nothing is, and occupied always")
    func shapes() async throws {
        let stage = try RouterStage()
        for (path, query, expected) in [
            ("/channels", [("filter_by_prefix", "no-")], #"{"channels":{}}"#),
            ("/channels", [], #"{"channels":{"presence-room":{},"room":{}}}"#),
            (
                "/channels", [("filter_by_prefix", "presence-"), ("info", "user_count,subscription_count")],
                #"{"channels":{"presence-room":{"subscription_count":3,"user_count":2}}}"#
            ),
            ("/channels/never", [], #"{"occupied":false}"#), ("/channels/room", [], #"{"occupied":true}"#),
            ("/channels/never", [("info", "subscription_count")], #"{"occupied":false,"subscription_count":0}"#),
            ("/channels/presence-never", [("info", "user_count")], #"{"occupied":false,"user_count":0}"#),
            (
                "/channels/presence-room", [("info", "user_count, subscription_count")],
                #"{"occupied":true,"subscription_count":3,"user_count":2}"#
            ),
            ("/channels/presence-room/users", [], #"{"users":[{"id":"a"},{"id":"b"}]}"#),
            ("/channels/presence-never/users", [], #"{"users":[]}"#),
            ("/connections", [], #"{"connections":0}"#),
        ] as [(String, [(String, String)], String)] {
            let response = try await stage.send("GET", path, query: query.map { (name: $0.0, value: $0.1) })
            #expect(response.status == 200 && response.text == expected, "\(path) \(query)")
        }
        for (path, query, word) in [
            ("/channels", ("info", "user_count"), "presence-"), ("/channels", ("info", "colour"), "colour"),
            ("/channels", ("info", "cache"), "one channel"), ("/channels/room", ("info", "user_count"), "Cannot retrieve the user count"),
            ("/channels/room", ("info", "cache"), "Cannot retrieve the cache"), ("/channels/room", ("info", "colour"), "colour"),
            ("/channels/presence-room/users", ("info", "user_count"), "The following query string parameters are extraneous: info"),
        ] as [(String, (String, String), String)] {
            let response = try await stage.send("GET", path, query: [(name: query.0, value: query.1)])
            #expect(response.status == 400 && response.error.contains(word), "\(path) \(query): \(response.text)")
        }
    }

    @Test("says with dry_run who would be told, and publishes nothing")
    func dryRun() async throws {
        let stage = try RouterStage()
        func ask(_ members: String) async throws -> (status: Int, json: JSONValue) {
            let body = #"{"name":"e","data":"d","dry_run":true,\#(members)}"#
            let answer = try await stage.send("POST", "/events", body, headers: ["idempotency-key": "k"])
            return (answer.status, try JSONValue(parsing: answer.body))
        }
        let answer = try await ask(#""channels":["defined-a","room"]"#)
        let recipient: JSONValue = [
            "user": "u", "known": "live", "decision": "await_receipt",
            "why": "may be reached by the socket (live): pushed to without a receipt in time", "surface": "socket", "wait_ms": 8_000,
            "devices": ["phone"],
        ]
        #expect(
            answer.json == [
                "dry_run": true,
                "channels": [
                    "defined-a": [
                        "definition": "defined", "policy": "critical", "expires_in_ms": 600_000, "recipients": 3,
                        "decisions": ["await_receipt": 1, "push": 2], "deliveries": [recipient], "more": true,
                    ],
                    "room": [
                        "definition": .null, "policy": .null, "expires_in_ms": .null, "recipients": 0, "decisions": [:], "deliveries": [],
                        "more": false,
                    ],
                ],
            ])
        let bad = try await stage.send(
            "POST", "/events", #"{"name":"e","data":"d","dry_run":true,"channel":"room"}"#, headers: ["idempotency-key": "\t"])
        #expect(bad.status == 400, "a key that the publish would refuse")
        #expect(stage.publications == 0 && stage.delivery.taken == 0 && stage.delivery.trials == 1)
        for members in [#""channel":"room","deliver_at":1"#, #""channel":"room","info":"user_count""#] {
            #expect(try await ask(members).status == 400)
        }
        let channels = (0...EventForecast.channelsMax).map { "\"c\($0)\"" }.joined(separator: ",")
        #expect(try await ask("\"channels\":[\(channels)]").status == 400)
        stage.delivery.refuse(PublishRefusal(status: 404, sentence: "no session"))
        #expect(try await ask(#""channel":"defined-a""#).status == 404)
        stage.delivery.setFull(true)
        #expect(try await ask(#""channel":"defined-a""#).status == 503)
        #expect(stage.publications == 0 && stage.delivery.taken == 0)
    }

    @Test("an event that delivery keeps has no part of its request's body", arguments: ["event", "key", "batch"])
    func detached(form: String) async throws {
        let stage = try RouterStage()
        let event = #"{"name":"n","channel":"defined-1","data":"kept","padding":"\#(String(repeating: "x", count: 1000))"}"#
        let response = try await stage.send(
            "POST", form == "batch" ? "/batch_events" : "/events", form == "batch" ? "{\"batch\":[\(event)]}" : event,
            headers: form == "key" ? ["idempotency-key": "k"] : [:])
        #expect(response.status == 200)
        let data = try #require(stage.delivery.lastRequest?.data)
        // A part of the body would begin behind the body's first byte.
        #expect(data.content == "kept" && data.bytes.startIndex == 0)
    }

    @Test("takes an event's members from the query when the body lacks them")
    func parameters() async throws {
        let stage = try RouterStage()
        func publish(_ body: String, _ query: [(name: String, value: String)]) async throws -> (HTTPResponse, PublishRequest?) {
            // A key sends it to the delivery task, which remembers what it was given.
            let response = try await stage.send(
                "POST", "/events", body, query: query, headers: ["idempotency-key": "\(body) \(query)".filter(\.isASCII)])
            return (response, stage.delivery.lastRequest)
        }
        let (_, all) = try await publish(
            "", [("name", "n"), ("channels[]", "a"), ("channels[]", "b"), ("data", "{\"x\":\"\u{e4}\"}"), ("socket_id", "1.2")])
        #expect(all?.channels.map(\.text) == ["a", "b"] && all?.name == "n" && all?.data.content == "{\"x\":\"\u{e4}\"}")
        #expect(all?.excludedSocketID == SocketID("1.2"))
        let (_, php) = try await publish(#"{"name":"n","data":"d"}"#, [("channels[0]", "a"), ("channels[1]", "b"), ("name", "other")])
        #expect(php?.channels.map(\.text) == ["a", "b"] && php?.name == "n")
        let (_, one) = try await publish(#"{"data":"d\/"}"#, [("channel", "a"), ("name", "n"), ("unknown", "x")])
        #expect(one?.channels.map(\.text) == ["a"] && one?.data.content == "d/")
        let (counted, own) = try await publish(
            #"{"name":"n","data":"d","channel":"room"}"#, [("channels[]", "b"), ("info", "subscription_count")])
        #expect(own?.channels.map(\.text) == ["room"] && counted.text == #"{"channels":{"room":{"subscription_count":2}}}"#)
        let taken = stage.delivery.taken
        for (body, query) in [("", [("name", "n"), ("data", "d")]), ("[]", [("name", "n")]), ("{", [("name", "n")])] {
            #expect(try await publish(body, query.map { (name: $0.0, value: $0.1) }).0.status == 400)
        }
        #expect(try await publish("", [("name", "n"), ("channel", "c"), ("data", String(repeating: "x", count: 10_241))]).0.status == 413)
        #expect(stage.delivery.taken == taken)
    }

    @Test("publishes and counts on the deprecated routes")
    func deprecated() async throws {
        let stage = try RouterStage()
        let plain = try await stage.send("POST", "/channels/room/events", "{\"raw\":1}", query: [("name", "n"), ("socket_id", "1.2")])
        #expect(plain.status == 202 && plain.text == "202 ACCEPTED" && plain.contentType.hasPrefix("text/plain"))
        #expect(stage.publications == 1)
        let defined = try await stage.send(
            "POST", "/channels/defined-1/events", "\"x\u{e4}\"\n", query: [("name", "n"), ("socket_id", "1.2")])
        #expect(defined.status == 202)
        let request = stage.delivery.lastRequest
        #expect(request?.name == "n" && request?.data.content == "\"x\u{e4}\"\n" && request?.excludedSocketID == SocketID("1.2"))
        for (body, query, status, word) in [
            ("d", [], 400, "name is missing"), ("d", [("name", "pusher:x")], 400, "reserved"),
            ("d", [("name", "n"), ("socket_id", "x")], 400, "socket_id"),
            (String(repeating: "x", count: 10_241), [("name", "n")], 413, "10240"),
        ] as [(String, [(String, String)], Int, String)] {
            let refused = try await stage.send("POST", "/channels/room/events", body, query: query.map { (name: $0.0, value: $0.1) })
            #expect(refused.status == status && refused.error.contains(word), "\(refused.text)")
        }
        #expect(
            try await stage.send("POST", "/channels/room/events", String(repeating: "x", count: 10_240), query: [("name", "n")]).status
                == 202)
        // With a key, the text and its type come again.
        for expected in [nil, "true"] {
            let keyed = try await stage.send(
                "POST", "/channels/room/events", "d", query: [("name", "n")], headers: ["idempotency-key": "k"])
            #expect(keyed.status == 202 && keyed.text == "202 ACCEPTED" && keyed.contentType == plain.contentType)
            #expect(keyed[header: "Idempotency-Replayed"] == expected)
        }
        for (channel, expected) in [
            ("room", #"{"connection_count":2,"occupied":true}"#), ("never", #"{"connection_count":0,"occupied":false}"#),
            ("presence-room", #"{"connection_count":3,"occupied":true,"user_count":2}"#),
        ] {
            #expect(try await stage.send("GET", "/channels/\(channel)/stats").text == expected)
        }
    }
}
