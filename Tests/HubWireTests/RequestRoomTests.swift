import HubCore
import Testing

@testable import HubWire

@Suite("Memory of requests")
struct RequestRoomTests {
    private func read(_ target: String, _ memory: inout HeadMemory) throws -> HTTPRequest {
        let progress = Array("POST \(target) HTTP/1.1\r\nHost: h\r\n\r\n".utf8).withUnsafeBytes {
            RequestHead.read($0, scanned: 0, memory: &memory)
        }
        guard case .complete(let head, _) = progress else { throw HeadRefusal(400, "\(target) was refused") }
        return head.request
    }

    private func place(_ bytes: [UInt8]) -> UnsafeRawPointer? { bytes.withUnsafeBytes { $0.baseAddress } }

    /// Reads a request, has its memory taken back, and returns where its query and its body lay.
    private func serve(_ target: String, body: String, _ memory: inout HeadMemory) throws -> (UnsafeRawPointer?, UnsafeRawPointer?) {
        var request = try read(target, &memory)
        request.body = Array(body.utf8)
        let places = (place(request.query.bytes), place(request.body))
        memory.room.takeBack(&request)
        return places
    }

    @Test("a request lies in the memory of the one before it")
    func reused() throws {
        var memory = HeadMemory()
        let (query, body) = try serve("/apps/1/events?auth_key=k&auth_signature=s", body: "the first body", &memory)
        let next = try read("/apps/1/events?auth_key=l", &memory)
        #expect(place(next.query.bytes) == query && next.query.map(\.value) == ["l"])
        var room = memory.room.takeBody()
        #expect(room.isEmpty)
        room.append(1)
        #expect(place(room) == body)
    }

    @Test("a request that somebody keeps stays as it is")
    func kept() throws {
        var memory = HeadMemory()
        var first = try read("/apps/1/events?auth_key=first", &memory)
        first.body = Array("the first body".utf8)
        var copy = first
        memory.room.takeBack(&copy)
        let second = try read("/apps/2/events?auth_key=other", &memory)
        var body = memory.room.takeBody()
        body += Array("another body".utf8)
        #expect(first.path == "/apps/1/events" && second.path == "/apps/2/events")
        #expect(first.query.map(\.value) == ["first"] && second.query.map(\.value) == ["other"])
        #expect(String(decoding: first.body, as: UTF8.self) == "the first body")
    }

    @Test("memory of long requests is not kept")
    func bounds() throws {
        for (bytes, isKept) in [(1_000, true), (RequestRoom.bytesMax + 1, false)] {
            var room = RequestRoom()
            var request = HTTPRequest(
                method: "POST", path: "/", query: [("name", String(repeating: "v", count: bytes))],
                body: [UInt8](repeating: 0, count: bytes))
            room.takeBack(&request)
            #expect((room.takeQuery().bytes.capacity >= bytes) == isKept)
            #expect((room.takeBody().capacity >= bytes) == isKept)
        }
    }

    @Test("memory of many short parameters is not kept")
    func manyParameters() {
        var room = RequestRoom()
        var request = HTTPRequest(method: "GET", path: "/", query: Array(repeating: ("a", ""), count: 1000))
        #expect(request.query.bytes.count < 4000)
        room.takeBack(&request)
        #expect(room.takeQuery().room < 1000)
    }

    @Test("a path is the one that was written, whatever path came before it")
    func paths() {
        let paths = ["/", "/a", "/b", "/apps/1/events", "/apps/2/events", "/apps/1/event", "/apps/1/events", "/\u{E9}", "/e\u{301}", ""]
        let room = RequestRoom()
        for path in paths + paths.reversed() {
            let text = Array(path.utf8).withUnsafeBytes { room.path(of: $0) }
            #expect(Array(text.utf8) == Array(path.utf8))
        }
    }
}
