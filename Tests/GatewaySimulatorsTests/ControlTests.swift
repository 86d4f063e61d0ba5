import HubCore
import HubJSON
import Testing

@testable import GatewaySimulators

@Suite("Control API") struct ControlTests {
    private func call(
        _ fixture: Fixture, _ method: String, _ path: String, _ body: String? = nil
    ) throws -> (status: Int, json: JSONValue) {
        let data = body.map { ["--data-binary", $0] } ?? []
        let answer = try Fixture.curl(["-X", method, "-w", "\n%{http_code}", fixture.gateways.controlURL + path] + data)
        let lines = answer.output.split(separator: "\n")
        return (Int(lines.last ?? "") ?? 0, try JSONValue(parsing: String(lines.first ?? "")))
    }

    @Test("a scripted fault, the requests it met, and their clearing")
    func wholeWay() throws {
        let fixture = try Fixture()
        let client = try fixture.apnsClient()
        let fault = #"{"status":410,"reason":"Unregistered","timestamp":1700000000000,"times":1,"retry_after":3}"#
        #expect(try call(fixture, "PUT", "/faults/\(Fixture.token)?provider=apns", fault).status == 200)
        #expect(try call(fixture, "GET", "/faults").json.arrayValue?.first?["token"]?.stringValue == Fixture.token)
        let headers = try fixture.apnsHeaders()
        for status in [410, 200] {
            #expect(try client.send("POST", "/3/device/\(Fixture.token)", headers, body: Fixture.alert).status == status)
        }
        _ = try client.send("POST", "/3/device/00", headers, body: Fixture.alert)

        let all = try call(fixture, "GET", "/requests?provider=apns&token=\(Fixture.token)").json.arrayValue ?? []
        #expect(all.compactMap { $0["status"]?.intValue } == [410, 200])
        #expect(all.first?["reason"] == "Unregistered")
        #expect(all.first?["body"]?["aps"]?["alert"]?["body"] == "B")
        #expect(all.first?["headers"]?["apns-push-type"] == "alert")
        #expect(try call(fixture, "GET", "/requests?provider=fcm").json == [])
        #expect(try call(fixture, "GET", "/requests?after=2").json.arrayValue?.count == 1)
        let health = try call(fixture, "GET", "/health").json
        #expect(health["received"]?["apns"] == 3 && health["accepted"]?["apns"] == 2 && health["stored"] == 3)
        #expect(try call(fixture, "DELETE", "/requests").status == 200)
        #expect(try call(fixture, "GET", "/requests").json == [])
    }

    @Test(
        "a mistake is a 400 that says what to change",
        arguments: [
            ("PUT", "/faults/ab", #"{"statsu":410}"#, "statsu"), ("PUT", "/faults/ab", #"{"status":9}"#, "status"),
            ("PUT", "/faults/ab", #"{"action":"explode"}"#, "action"), ("PUT", "/faults/ab", "[5]", "object"),
            ("PUT", "/faults/ab", "{", "no JSON"), ("PUT", "/faults/ab?provider=sms", "{}", "provider"),
            ("PUT", "/faults/ab", #"{"retry_after":"a\r\nb"}"#, "retry_after"), ("PUT", "/faults/ab", #"{"times":0}"#, "times"),
            ("GET", "/requests?tokn=1", "", "tokn"), ("PUT", "/settings", #"{"apns_streams_max":0}"#, "apns_streams_max"),
        ])
    func mistakes(_ method: String, _ path: String, _ body: String, _ mention: String) throws {
        let fixture = try Fixture()
        let answer = try call(fixture, method, path, body)
        #expect(answer.status == 400)
        #expect(answer.json["error"]?.stringValue?.contains(mention) == true)
    }

    @Test("an answer larger than any socket buffer arrives whole")
    func largeAnswer() throws {
        let fixture = try Fixture()
        let client = try fixture.apnsClient()
        let headers = try fixture.apnsHeaders()
        let body = APNsTests.padded(to: 4096)
        _ = try client.send("POST", "/3/device/00", headers, body: body)
        try client.run(until: "SETTINGS") { client.announcedStreamsMax.count == 2 }
        // Seven megabytes in the end: Linux lets a loopback socket's send buffer grow to four.
        for _ in 0..<3 {
            let streams = (0..<499).map { _ in client.submit("POST", "/3/device/00", headers, body: body) }
            try client.run(until: "the responses") { streams.allSatisfy { client.responses[$0]?.endCode != nil } }
        }
        let request = Array("GET /requests?token=00 HTTP/1.1\r\nConnection: close\r\n\r\n".utf8)
        let answer = try PlainClient.exchange(port: fixture.gateways.controlPort, request, receiveBufferBytes: 4096)
        let head = try #require(answer.firstRange(of: "\r\n\r\n"))
        let records = try JSONValue(parsing: String(answer[head.upperBound...])).arrayValue ?? []
        #expect(records.count == 3 * 499 + 1)
        #expect(records.allSatisfy { $0["status"] == 200 && $0["body_bytes"] == 4096 })
    }

    @Test("an unknown resource is a 404 that lists the known ones")
    func unknown() throws {
        let fixture = try Fixture()
        let answer = try call(fixture, "GET", "/nothing")
        #expect(answer.status == 404)
        #expect(answer.json["error"]?.stringValue?.contains("/requests") == true)
    }

    @Test("a token with a slash and a percent sign keeps them")
    func encodedToken() throws {
        let fixture = try Fixture()
        #expect(try call(fixture, "PUT", "/faults/a%2Fb%25c", #"{"reason":"UNREGISTERED"}"#).status == 200)
        let answer = try fixture.sendFCM(["token": "a/b%c"], on: fixture.fcmClient())
        #expect(answer.status == 404)
    }

    @Test("the record store drops the oldest and counts them")
    func bounded() {
        let ledger = Ledger()
        var request = ReceivedRequest(connection: 1, stream: 1)
        request.body = [UInt8](repeating: 0x20, count: 1024)
        for index in 0..<(SimulatorLimits.recordsMax * 2 + 10) {
            ledger.record(
                RecordedRequest(provider: .fcm, token: "\(index)", request: request, receivedAt: 0, status: 200, reason: ""))
        }
        #expect(ledger.counts.stored == SimulatorLimits.recordsMax)
        #expect(ledger.counts.dropped == SimulatorLimits.recordsMax + 10)
        let rest = ledger.requests { _ in true }
        #expect(rest.first?.sequence == SimulatorLimits.recordsMax + 11 && rest.last?.sequence == SimulatorLimits.recordsMax * 2 + 10)
        request.body = [UInt8](repeating: 0x20, count: SimulatorLimits.recordedBytesMax / 2)
        for _ in 0..<3 {
            ledger.record(RecordedRequest(provider: .fcm, token: "", request: request, receivedAt: 0, status: 200, reason: ""))
        }
        #expect(ledger.counts.stored == 1)
    }
}
