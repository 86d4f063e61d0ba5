import HubCrypto

/// The configuration file of a new hub: commented, with random secrets, and good without a change.
struct FirstConfiguration {
    var host: String
    var port: Int
    /// Folder for what the hub stores.
    var data: String
    /// Folder of the channel definitions. Nil where there is none yet: its line is a comment.
    var channels: String?

    private static let keyBytes = 10
    private static let secretBytes = 16

    /// The file's text. Each call has new secrets.
    var text: String {
        """
        # The configuration of a Tandem hub. docs/operations.md explains every setting.
        # After a change: tandem check --config FILE. A reload (SIGHUP) reads apps, push and channels; the rest needs a restart.

        listen:
          host: \(Self.quoted(host))        # "0.0.0.0": other machines may connect
          port: \(port)
          # Without a certificate, put a proxy with TLS in front:
          # tls: { cert: /etc/tandem/fullchain.pem, key: /etc/tandem/key.pem }

        apps:
          - id: "1"                # Clients know the key. Backends know id, key and secret.
            key: "\(Self.random(Self.keyBytes))"
            secret: "\(Self.random(Self.secretBytes))"
            # max_connections: 10000
            # webhooks: [{ url: "https://backend.example/hook", events: [channel_occupied, channel_vacated] }]

        # Signs tandem apps and tandem cluster.
        operator: { key: operator, secret: "\(Self.random(Self.secretBytes))" }

        # Several nodes are one hub with postgres://USER@HOST/DATABASE and a backplane.
        store: \(Self.quoted("sqlite:\(data)/tandem.db"))
        # backplane: redis://HOST
        data: \(Self.quoted(data))
        \(definitions)     # a file for each kind of channel: who gets which event, and on which surface

        # The console at /console/ needs a password: tandem console password prints its hash.
        # console: { operator_password_hash: scrypt.… }
        # Prometheus needs a token where listen.host is open to other machines: openssl rand -hex 16.
        # metrics: { token: … }
        # limits: { trusted_proxies: [10.0.0.0/8], connections_per_address: 0 }

        # Without credentials, notifications are logged instead of sent. tandem check --live asks the gateways.
        # push:
        #   apns: { key_path: /etc/tandem/AuthKey.p8, key_id: ABCDEFGHIJ, team_id: KLMNOPQRST, topic: com.example.app }
        #   fcm:  { service_account: /etc/tandem/service-account.json }

        """
    }

    /// The setting of the channel definitions' folder. Its line as a comment has the hub look in its usual places.
    private var definitions: String { channels.map { "channels: \(Self.quoted($0))" } ?? "# channels: ./channels" }

    private static func random(_ bytes: Int) -> String { Hex.encode(SecureRandom.bytes(bytes)) }

    /// A double-quoted scalar of YAML (YAML 1.2, 7.3.1).
    private static func quoted(_ text: String) -> String {
        "\"\(text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\""))\""
    }
}
