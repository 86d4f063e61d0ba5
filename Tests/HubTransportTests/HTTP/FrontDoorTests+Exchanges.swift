import Foundation
import HubCore
import Testing

@testable import HubTransport

/// Requests that expect 100 before their body, and several requests of one connection.
extension FrontDoorTests {
    // MARK: Expectations

    @Test("who waits for 100 before a body is told to go on at once", arguments: ["Content-Length: 5", "Transfer-Encoding: chunked"])
    func expectation(framing: String) throws {
        try withServer(options: Self.patient) { server in
            let body = framing.hasPrefix("C") ? "hello" : "5\r\nhello\r\n0\r\n\r\n"
            let peer = try server.plain()
            for word in ["100-continue", "100-Continue"] {
                try peer.send(text: Self.head("POST /x HTTP/1.1", [framing, "Expect: \(word)"]))
                #expect(try peer.answer(isHead: true).status == 100)
                try peer.send(text: body)
                #expect(try peer.answer().text.contains("\"body\":\"hello\""))
                if framing.hasPrefix("T") { return }
            }
            #expect(try Self.goesOn(peer))
        }
    }

    @Test("who does not wait is answered all the same", arguments: ["Content-Length: 5", "Transfer-Encoding: chunked"])
    func eagerExpectation(framing: String) throws {
        try withServer(options: Self.patient) { server in
            let body = framing.hasPrefix("C") ? "hello" : "5\r\nhello\r\n0\r\n\r\n"
            let peer = try server.plain()
            try peer.send(text: Self.head("POST /x HTTP/1.1", [framing, "Expect: 100-continue"]) + body)
            // With the body there already, nothing need be said (RFC 9110, 10.1.1).
            var answer = try peer.answer()
            if answer.status == 100 { answer = try peer.answer() }
            #expect(answer.status == 200 && answer.text.contains("\"body\":\"hello\""))
        }
    }

    @Test("a body that the head is enough to refuse is never asked for") func refusedExpectation() throws {
        var behaviour = Behaviour()
        behaviour.bodyLimit = { $0.path == "/closed" ? .refused(.error(401, "sign your request")) : .bytes(.max) }
        let length = LoopOptions.unaskedBodyBytesMax + 1
        let rows = [
            Row(
                "by the delegate", Self.head("POST /closed HTTP/1.1", ["Content-Length: \(length)", "Expect: 100-continue"]), [401],
                ends: true),
            Row(
                "by the delegate, chunked", Self.head("POST /closed HTTP/1.1", ["Transfer-Encoding: chunked", "Expect: 100-continue"]),
                [401], ends: true),
            Row("by its length", Self.head("POST /x HTTP/1.1", ["Content-Length: 2000000", "Expect: 100-continue"]), [413], ends: true),
            Row(
                "by the expectation", Self.head("POST /x HTTP/1.1", ["Content-Length: 5", "Expect: 100-continue, more"]), [417],
                ends: true),
        ]
        try Self.check(rows, behaviour)
    }

    @Test("an expectation of HTTP/1.0 is ignored") func oldExpectation() throws {
        try withServer(options: Self.patient) { server in
            let peer = try server.plain()
            try peer.send(text: "POST /x HTTP/1.0\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello")
            #expect(try peer.answer().text.contains("\"body\":\"hello\""))
            #expect(try peer.ends())
        }
    }

    // MARK: Several requests

    @Test(
        "requests that do not wait are answered in their order, with bodies and without",
        arguments: ["at once", "later", "in another order"])
    func pipelined(answers: String) throws {
        var behaviour = Behaviour()
        let waiting = Recorder<(HTTPReply, HTTPResponse)>()
        switch answers {
        case "later":
            behaviour.request = { loop, request, reply in
                loop.respond(reply, .describing(request))
                return nil
            }
        case "in another order":
            // Every third answer comes a turn late, when others could have been given.
            behaviour.request = { loop, request, reply in
                guard request.path.hasSuffix("3") else { return .describing(request) }
                waiting.append((reply, .describing(request)))
                return nil
            }
        default: break
        }
        try withServer(options: Self.patient, behaviour) { server in
            let peer = try server.plain()
            var requests = ""
            for index in 0..<40 {
                switch index % 3 {
                case 0: requests += Self.head("GET /n\(index) HTTP/1.1")
                case 1: requests += Self.head("POST /n\(index) HTTP/1.1", ["Content-Length: 6"]) + "body\(index + 10)"
                default: requests += Self.head("PUT /n\(index) HTTP/1.1", ["Content-Length: 0"])
                }
            }
            try peer.send(text: requests)
            for index in 0..<40 {
                if answers == "in another order", index % 10 == 3 {
                    #expect(waiting.wait { $0.count == index / 10 + 1 })
                    let (reply, response) = waiting.all[index / 10]
                    try server.on { $0.respond(reply, response) }
                }
                let answer = try peer.answer()
                #expect(
                    answer.text.contains("\"/n\(index)\"") && (index % 3 != 1 || answer.text.contains("\"body\(index + 10)\"")),
                    "\(index)")
            }
            #expect(try Self.goesOn(peer))
        }
    }

    @Test("nothing behind Connection: close is answered, and nothing behind a refusal") func behindTheEnd() throws {
        try withServer(options: Self.patient) { server in
            for last in [
                Self.head("GET /last HTTP/1.1", ["Connection: close"]), Self.head("GET /last HTTP/1.1", ["X-Other : o"]),
                "GET /last HTTP/1.0\r\n\r\n",
            ] {
                let peer = try server.plain()
                try peer.send(text: Self.head("GET /first HTTP/1.1") + last + Self.head("GET /never HTTP/1.1"))
                #expect(try peer.answer().text.contains("/first"))
                #expect(try peer.answer().headers["connection"] == "close")
                #expect(try peer.ends())
            }
            #expect(server.seen.all.count { if case .request = $0 { true } else { false } } == 5)
        }
    }

    @Test("the network may cut a request with a body at any byte") func everySplit() throws {
        try withServer(options: Self.patient) { server in
            let peer = try server.plain()
            let bytes = Array((Self.head("POST /x HTTP/1.1", ["Content-Length: 5"]) + "hello" + Self.head("GET /y HTTP/1.1")).utf8)
            for split in 1..<bytes.count {
                try peer.stream.send(Array(bytes[..<split]))
                try peer.stream.send(Array(bytes[split...]))
                #expect(try peer.answer().text.contains("\"body\":\"hello\""), "split at \(split)")
                #expect(try peer.answer().text.contains("\"/y\""), "split at \(split)")
            }
        }
    }
}
