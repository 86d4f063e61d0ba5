import Testing

@testable import HubWire

@Suite("Paths of WebSockets")
struct SocketPathTests {
    @Test(
        "the key stands behind /app/, whatever a proxy has left in front",
        arguments: [
            ("/app/key", "key"), ("/app/key/", "key"), ("//app//key", "key"), ("/behind/a/proxy/app/key", "key"), ("app/key", "key"),
            ("/app/app", "app"), ("/app/app/key", "key"), ("/app", nil), ("/app/", nil), ("/", nil), ("", nil), ("/key", nil),
            ("/apps/key", nil),
            ("/xapp/key", nil), ("/app/key/more", nil),
        ] as [(String, String?)])
    func key(path: String, expected: String?) {
        #expect(SocketPath.key(in: path) == expected)
    }
}
