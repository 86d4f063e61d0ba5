import HubCore
import Testing

@Suite("IP addresses and networks")
struct IPAddressTests {
    @Test(
        "an address is read in every spelling, and written in one",
        arguments: [
            ("192.0.2.1", "192.0.2.1"), ("::ffff:192.0.2.1", "192.0.2.1"), ("::ffff:c000:201", "192.0.2.1"), ("0.0.0.0", "0.0.0.0"),
            ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"), ("2001:db8::1", "2001:db8::1"), ("::", "::"), ("::1", "::1"), ("1::", "1::"),
            ("1:0:0:2:0:0:0:3", "1:0:0:2::3"), ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"), ("fe80::1%eth0", "fe80::1"),
            ("64:ff9b::192.0.2.33", "64:ff9b::c000:221"), ("1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"),
        ])
    func read(text: String, written: String) {
        #expect(IPAddress(text)?.description == written)
        #expect(IPAddress(written) == IPAddress(text))
    }

    @Test(
        "what is no address is none",
        arguments: [
            "", " ", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4", "1.2.3.4:80", "[::1]", "1.2.3.-4", "1..3.4", ":", ":::", "1::2::3",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::8", "12345::", "g::1", "::1.2.3", "1.2.3.4::", "unknown", "_hidden", "::+1",
            "1:2:3:4:5:6:7:1.2.3.4", "١.2.3.4",
        ])
    func refused(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test("bytes in network order are an address, four or sixteen of them")
    func bytes() {
        #expect(IPAddress(bytes: [192, 0, 2, 1])?.description == "192.0.2.1")
        #expect(IPAddress(bytes: [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [1])?.description == "2001:db8::1")
        #expect(IPAddress(bytes: [1, 2, 3]) == nil)
    }

    @Test("an IPv6 neighbourhood counts as one peer, an IPv4 address as itself")
    func neighbourhood() {
        let of = { (text: String) in IPAddress(text)?.neighbourhood.description }
        #expect(of("2001:db8:1:2:3:4:5:6") == "2001:db8:1:2::" && of("2001:db8:1:2::9") == "2001:db8:1:2::")
        #expect(of("::ffff:192.0.2.1") == "192.0.2.1" && of("::1") == "::")
        #expect(
            IPAddress("::1")?.isLoopback == true && IPAddress("127.9.9.9")?.isLoopback == true
                && IPAddress("128.0.0.1")?.isLoopback == false)
    }

    @Test("a network holds the addresses that begin as it does")
    func networks() throws {
        let holds = { (network: String, address: String) in try #require(IPNetwork(network)).contains(#require(IPAddress(address))) }
        #expect(try holds("10.0.0.0/8", "10.255.255.255") && !holds("10.0.0.0/8", "11.0.0.0"))
        #expect(try holds("10.0.0.0/8", "::ffff:10.1.2.3"))
        #expect(try holds("192.0.2.7", "192.0.2.7") && !holds("192.0.2.7", "192.0.2.6"))
        #expect(try holds("0.0.0.0/0", "203.0.113.9") && !holds("0.0.0.0/0", "2001:db8::1"))
        #expect(try holds("2001:db8::/33", "2001:db8:7fff::1") && !holds("2001:db8::/33", "2001:db8:8000::1"))
        #expect(try holds("2001:db8::/65", "2001:db8::7fff:0:0:1") && !holds("2001:db8::/65", "2001:db8::8000:0:0:1"))
        #expect(try holds("::/0", "1.2.3.4") && holds("::1/128", "::1"))
    }

    @Test(
        "what is no network is none, also where bits behind the prefix are set",
        arguments: [
            "", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8/8", "10.0.0.1/8", "2001:db8::1/64", "::/129",
            "host/8", "fe80::%e/64",
        ])
    func noNetworks(text: String) {
        #expect(IPNetwork(text) == nil)
    }
}
