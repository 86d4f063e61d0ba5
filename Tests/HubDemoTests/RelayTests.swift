import Glibc
import HubDemo
import Testing

@Suite("Relay") struct RelayTests {
    /// A listening socket in the hub's place, and a relay with one phone in front of it.
    private struct World: ~Copyable {
        let listener: Int32
        let relay: Relay

        init() throws {
            let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = Self.loopback(port: 0)
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            withUnsafeMutableBytes(of: &address) { bytes in
                let pointer = bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
                bind(listener, pointer, length)
                listen(listener, 8)
                getsockname(listener, pointer, &length)
            }
            self.listener = listener
            relay = try Relay(phones: 1)
            relay.lead(to: UInt16(bigEndian: address.sin_port))
        }

        deinit {
            relay.stop()
            close(listener)
        }

        private static func loopback(port: UInt16) -> sockaddr_in {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            return address
        }

        func app() -> Int32 {
            let app = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = Self.loopback(port: relay.ports[0])
            withUnsafeBytes(of: &address) {
                _ = connect(app, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
            }
            return app
        }

        /// An app's connection and the hub's end of it, over which one word each has gone.
        func pair() -> (app: Int32, hub: Int32) {
            let app = app()
            let hub = RelayTests.accepted(listener)
            RelayTests.say("hello", app)
            #expect(RelayTests.hear(hub) == "hello")
            RelayTests.say("welcome", hub)
            #expect(RelayTests.hear(app) == "welcome")
            return (app, hub)
        }
    }

    private static let patience: Int32 = 10_000

    /// The next connection; -1 when none comes.
    private static func accepted(_ listener: Int32) -> Int32 {
        var wait = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
        return poll(&wait, 1, patience) > 0 ? accept(listener, nil, nil) : -1
    }

    private static func say(_ text: String, _ socket: Int32) { send(socket, text, text.utf8.count, Int32(MSG_NOSIGNAL)) }

    /// The next words; `end` for an end or a reset, nil when nothing comes.
    private static func hear(_ socket: Int32, within milliseconds: Int32 = patience) -> String? {
        var wait = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        guard poll(&wait, 1, milliseconds) > 0 else { return nil }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = recv(socket, &bytes, bytes.count, 0)
        return count > 0 ? String(decoding: bytes.prefix(count), as: UTF8.self) : "end"
    }

    @Test("airplane mode: neither side hears a byte or an end; afterwards the app's side is reset, and the hub's stays silent")
    func airplane() throws {
        let world = try World()
        let (app, hub) = world.pair()
        world.relay.set(.silent, line: 0)
        Self.say("lost", app)
        Self.say("lost", hub)
        let late = world.app()
        Self.say("later", late)
        #expect(Self.hear(hub, within: 300) == nil)
        #expect(Self.hear(app, within: 0) == nil)
        world.relay.set(.open, line: 0)
        #expect(Self.hear(app) == "end")
        // A connection that was begun without a network is served now; the lost one is not.
        let next = Self.accepted(world.listener)
        #expect(Self.hear(next) == "later")
        #expect(Self.hear(hub, within: 100) == nil)
        for socket in [app, hub, late, next] { close(socket) }
    }

    @Test("a suspended app keeps its connection, and reads afterwards what has come")
    func suspended() throws {
        let world = try World()
        let (app, hub) = world.pair()
        world.relay.set(.held, line: 0)
        Self.say("missed", hub)
        Self.say("said", app)
        #expect(Self.hear(app, within: 300) == nil)
        #expect(Self.hear(hub, within: 0) == nil)
        world.relay.set(.open, line: 0)
        #expect(Self.hear(app) == "missed")
        #expect(Self.hear(hub) == "said")
        close(app)
        close(hub)
    }

    @Test("a closed app's connection ends at both sides, and no byte comes before the end")
    func closed() throws {
        let world = try World()
        let (app, hub) = world.pair()
        world.relay.cut(line: 0)
        #expect(Self.hear(hub) == "end")
        #expect(Self.hear(app) == "end")
        close(app)
        close(hub)
    }

    @Test("an end at one side ends the other, behind all that was said before")
    func ends() throws {
        let world = try World()
        let (app, hub) = world.pair()
        Self.say("last", hub)
        close(hub)
        #expect(Self.hear(app) == "last")
        #expect(Self.hear(app) == "end")
        close(app)
    }

    @Test("while the hub is down a new connection ends at once")
    func down() throws {
        let world = try World()
        let free = try Relay(phones: 1)
        world.relay.lead(to: free.ports[0])
        free.stop()
        let app = world.app()
        #expect(Self.hear(app) == "end")
        close(app)
    }
}
