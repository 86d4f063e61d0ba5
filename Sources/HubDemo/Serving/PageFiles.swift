internal import HubCore

/// The files of the demo's pages, which are part of the program.
enum PageFiles {
    static let names: [String: (bytes: [UInt8], type: String)] = [
        "": (PackageResources.demo_html, "text/html; charset=utf-8"),
        "demo.css": (PackageResources.demo_css, "text/css; charset=utf-8"),
        "demo.js": (PackageResources.demo_js, "text/javascript; charset=utf-8"),
        "device.js": (PackageResources.device_js, "text/javascript; charset=utf-8"),
        "app.html": (PackageResources.app_html, "text/html; charset=utf-8"),
        "app.css": (PackageResources.app_css, "text/css; charset=utf-8"),
        "app.js": (PackageResources.app_js, "text/javascript; charset=utf-8"),
        "pusher.js": (PackageResources.pusher_js, "text/javascript; charset=utf-8"),
    ]

    /// The answer with this file; nil if there is none.
    /// - Parameter relays: ports of the phones' networks: all that the pages may reach besides their own server.
    static func response(_ name: String, relays: [UInt16]) -> HTTPResponse? {
        guard let file = names[name] else { return nil }
        let hubs = relays.map { "http://127.0.0.1:\($0)" }.joined(separator: " ")
        let sockets = relays.map { "ws://127.0.0.1:\($0)" }.joined(separator: " ")
        let policy =
            "default-src 'none'; script-src 'self' \(hubs); style-src 'self'; img-src 'self' data:; connect-src 'self' \(hubs) \(sockets); "
            + "frame-src 'self'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
        return HTTPResponse(
            status: 200, contentType: file.type, body: file.bytes,
            headers: [
                ("Cache-Control", "no-store"), ("Content-Security-Policy", policy), ("Referrer-Policy", "no-referrer"),
                ("X-Content-Type-Options", "nosniff"),
            ])
    }
}
