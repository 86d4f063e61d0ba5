internal import HubCore
internal import HubCrypto

/// The console's page, scripts and style, which are part of the program. Any thread.
enum ConsoleFiles {
    struct File: Sendable {
        let contentType: String
        let body: [UInt8]
        /// Strong validator, with its quotes.
        let tag: String

        fileprivate init(_ name: String, _ body: [UInt8]) {
            contentType =
                switch name.split(separator: ".").last {
                case "css": "text/css; charset=utf-8"
                case "js": "text/javascript; charset=utf-8"
                case "svg": "image/svg+xml"
                default: "text/html; charset=utf-8"
                }
            self.body = body
            tag = "\"\(Hex.encode(Digest.sha256(body)).prefix(32))\""
        }
    }

    /// The files by their names below `/console/`; the page itself has an empty one.
    static let all: [String: File] = {
        let files: [(name: String, body: [UInt8])] = [
            ("", PackageResources.index_html), ("console.css", PackageResources.console_css),
            ("icon.svg", PackageResources.icon_svg), ("api.js", PackageResources.api_js), ("app.js", PackageResources.app_js),
            ("channels.js", PackageResources.channels_js), ("dom.js", PackageResources.dom_js),
            ("events.js", PackageResources.events_js), ("grid.js", PackageResources.grid_js),
            ("letters.js", PackageResources.letters_js), ("link.js", PackageResources.link_js),
            ("live.js", PackageResources.live_js), ("metrics.js", PackageResources.metrics_js),
            ("now.js", PackageResources.now_js), ("parts.js", PackageResources.parts_js),
            ("person.js", PackageResources.person_js), ("search.js", PackageResources.search_js),
            ("story.js", PackageResources.story_js), ("trail.js", PackageResources.trail_js),
            ("try.js", PackageResources.try_js),
        ]
        return Dictionary(uniqueKeysWithValues: files.map { ($0.name, File($0.name, $0.body)) })
    }()

    /// Nil if there is no such file.
    static func respond(to request: HTTPRequest, name: String) -> HTTPResponse? {
        guard let file = all[name] else { return nil }
        guard request.method == "GET" || request.method == "HEAD" else { return .methodNotAllowed(request, "GET, HEAD") }
        let headers = [(name: "ETag", value: file.tag), (name: "Cache-Control", value: "no-cache")]
        let isKnown = request.headers["if-none-match"]?.split(separator: ",").contains { tag in
            let tag = tag.drop { $0 == " " }
            return tag == file.tag || tag == "W/\(file.tag)" || tag == "*"
        }
        if isKnown == true { return HTTPResponse(status: 304, contentType: file.contentType, body: [], headers: headers) }
        return HTTPResponse(status: 200, contentType: file.contentType, body: file.body, headers: headers)
    }
}
