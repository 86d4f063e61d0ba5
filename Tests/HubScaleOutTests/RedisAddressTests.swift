import HubScaleOut
import Testing

@Suite("The address of the backplane")
struct RedisAddressTests {
    @Test("says hosts, login, database and settings")
    func whole() throws {
        let plain = try RedisAddress("redis://r")
        #expect(plain.hosts == [.init(name: "r", port: 6379)] && !plain.usesTLS && plain.prefix == "tandem" && plain.database == 0)
        let all = try RedisAddress("rediss://us%65r:p%40ss:w@10.0.0.1:7000,[::1]:7001,h/12?prefix=quiz&ca=/etc/ca.pem")
        #expect(all.usesTLS && all.user == "user" && all.password == "p@ss:w" && all.database == 12)
        #expect(all.hosts == [.init(name: "10.0.0.1", port: 7000), .init(name: "::1", port: 7001), .init(name: "h", port: 6379)])
        #expect(all.prefix == "quiz" && all.authorities == "/etc/ca.pem" && all.sentinel == nil)
        let sentinel = try RedisAddress("redis://:p@a,b:5/0?sentinel=main&sentinel_password=s")
        #expect(sentinel.hosts.map(\.port) == [26379, 5] && sentinel.sentinel == "main" && sentinel.sentinelPassword == "s")
        #expect(sentinel.user == nil && sentinel.password == "p")
    }

    @Test(
        "names mistakes",
        arguments: [
            ("http://r", "expected redis://HOST:PORT"), ("redis://", "expected"), ("redis://r:0", "a port"), ("redis://r:70000", "a port"),
            ("redis://r:+5", "a port"),
            ("redis://r/x", "the database"), ("redis://r/-1", "the database"), ("redis://r,", "expected"), ("redis://r,r", "twice"),
            ("redis://u@r", "needs a password"), ("redis://u:geheim%@r", "the password has a %"),
            ("redis://r?x=1", "'x' behind ? is unknown"),
            ("redis://r?prefix=", "has no value"), ("redis://r?prefix=a%20b", "prefix may have"), ("redis://[::1", "expected"),
            ("redis://u:geheim%ff@r", "no UTF-8"),
        ])
    func mistakes(text: String, part: String) {
        do throws(RedisAddress.Mistake) {
            let address = try RedisAddress(text)
            Issue.record("\(text) is taken as \(address)")
        } catch {
            #expect(error.sentence.contains(part), "\(text): \(error.sentence)")
            #expect(!error.sentence.contains("geheim"))
        }
    }
}
