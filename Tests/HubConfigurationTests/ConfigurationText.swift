import HubConfiguration
import HubYAML

/// Input of the configuration's tests: a file's text, the environment and the flags.
enum ConfigurationText {
    static func parse(
        _ text: String? = nil, _ environment: [String: String] = [:], _ flags: ConfigurationFlags = .init()
    ) throws(YAMLError) -> Configuration {
        try ConfigurationParser.parse(file: text.map { (name: "tandem.yaml", text: $0) }, environment: environment, flags: flags)
    }

    static func mistakes(
        _ text: String? = nil, _ environment: [String: String] = [:], _ flags: ConfigurationFlags = .init()
    ) -> [String] {
        do throws(YAMLError) {
            _ = try parse(text, environment, flags)
            return []
        } catch {
            return error.mistakes.map(\.description)
        }
    }

    static let everything = """
        listen:
          host: 127.0.0.2
          port: 7001
          loops: 4
          tls: { cert: c.pem, key: k.pem }
          proxy_protocol: true
        apps:
          - id: "12"
            key: the-key
            secret: the-secret
            keys: [{ key: second, secret: s2 }]
            enabled: false
            max_connections: 5
            client_events: false
            client_events_per_second: 20
            subscription_count: true
            presence_members_max: 200
            presence_linger: 500ms
            event_data_bytes_max: 20KiB
            activity_timeout: 60s
            ping_interval: 5s
            pong_timeout: 2500ms
            allowed_origins: ["https://a.example"]
            watchlist: false
            webhooks: [ { url: "http://h.example/x", events: [channel_occupied, cache_miss] } ]
          - { id: 13, keys: [{ key: third, secret: s3 }] }
        limits:   { max_connections: 5000, connections_per_address: 3, request_timeout: 1m, send_queue_bytes_max: 2MiB, send_queue_bytes_total_max: 1GiB, wrong_join_codes_per_minute: 5, joins_per_minute: 0, trusted_proxies: [10.0.0.0/8, "2001:db8::1"] }
        store:    postgres://u:p@db/tandem
        backplane: redis://r:6379
        channels: ./c
        data: ./d
        log_level: debug
        cors:     { origins: ["https://app.example", "http://localhost:3000"] }
        push:
          apns: { key_path: a.p8, key_id: K, team_id: T, topic: com.example.app, url: "https://sim:8443", ca_file: ca.pem, use_sandbox: true }
          fcm:  { service_account: f.json, url: "http://127.0.0.1:9000/x", ca_file: ca2.pem, messages_per_minute: 1200 }
          stale_after: 14d
        """
}
