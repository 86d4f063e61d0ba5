import HubConfiguration
import HubDefinitions
import HubServer

/// The hub's message when ready: its addresses, credentials, restrictions and a command to try.
enum Banner {
    /// - Parameter consoleTicket: opens the console once; nil if a password does, or nothing.
    static func text(
        _ configuration: Configuration, port: Int, consoleTicket: String?, definitions: DefinitionSet, folder: String?
    ) -> String {
        let isTLS = configuration.listen.tls != nil
        let host = configuration.listen.host.value
        let address = "\(host.contains(":") ? "[\(host)]" : host):\(port)"
        var lines = ["Tandem is ready at \(isTLS ? "https" : "http")://\(address)"]
        for app in configuration.apps {
            let credential = app.credentials.first
            let secret =
                configuration.usesDefaultCredentials ? ", secret \(credential?.secret ?? "") (the defaults: for this machine only)" : ""
            lines.append("  app \(app.id): WebSocket \(isTLS ? "wss" : "ws")://\(address)/app/\(credential?.key ?? "")\(secret)")
        }
        lines.append("  store: \(configuration.storeName)")
        lines.append(
            "  channel definitions: " + (definitions.names.isEmpty ? "none" : definitions.names.joined(separator: ", "))
                + (folder.map { " (from \($0))" } ?? ""))
        if let consoleTicket {
            lines.append("  console: \(isTLS ? "https" : "http")://\(address)/console/#ticket=\(consoleTicket) (opens once)")
        } else if configuration.console.hasPassword {
            lines.append("  console: \(isTLS ? "https" : "http")://\(address)/console/")
        }
        let push = [
            ("APNs", configuration.push.apns != nil || configuration.apps.contains { $0.push.apns != nil }),
            ("FCM", configuration.push.fcm != nil || configuration.apps.contains { $0.push.fcm != nil }),
        ]
        for (name, isConfigured) in push where !isConfigured {
            lines.append("  \(name) is not configured: its notifications are logged and counted, not sent")
        }
        if BuildInfo.configuration != "release" {
            lines.append("  build: \(BuildInfo.configuration), to try and to test; for load: make build, .build/release/tandem serve")
        }
        for key in configuration.notYetInForce { lines.append("  not yet in force: \(key)") }
        for name in configuration.unknownEnvironment {
            lines.append("  unknown variable: \(name) means nothing to Tandem; is it misspelt?")
        }
        lines.append("Publish an event from another terminal:")
        let flags = configuration.usesDefaultCredentials && port == 6001 ? "" : " --url \(isTLS ? "https" : "http")://\(address)"
        // The command's name as the operator typed it, so that the line can be pasted.
        lines.append("  \(CommandLine.arguments.first ?? "tandem") publish\(flags) my-channel greeting '{\"text\":\"hello\"}'")
        return lines.joined(separator: "\n")
    }
}
