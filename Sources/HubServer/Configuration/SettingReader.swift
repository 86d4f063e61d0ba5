internal import HubYAML

/// One value a setting could have, and where mistakes about it are noted.
struct Candidate {
    let node: YAMLNode
    let reader: YAMLReader
    let source: SettingSource

    func note(_ message: String) { reader.note(node, message) }
}

/// Finds what decides a setting: the command line before the environment, the environment before the file.
final class SettingReader {
    let file: YAMLReader
    let fileName: String
    private let environment: [String: String]
    /// A value that is no line of a file is read by the same rules as one that is, and noted under its own name.
    private var others: [YAMLReader] = []
    /// Secrets of apps that can be found by trying, with the keys they are called by.
    var shortSecrets: [(setting: Setting<String>, credential: AppCredential)] = []
    /// Whether some secret stands in the file.
    var fileHasSecrets = false
    /// The keys that were written somewhere.
    private(set) var written: [String: SettingSource] = [:]

    init(fileName: String, environment: [String: String]) {
        self.fileName = fileName
        self.environment = environment
        file = YAMLReader(file: fileName)
    }

    /// The file's mistakes by line, then the others in the order read.
    var mistakes: [YAMLMistake] { file.mistakes + others.flatMap(\.mistakes) }

    /// - Parameters:
    ///   - key: the member of `map`.
    ///   - flag: the option's name and what it was given.
    ///   - isText: whether the value is text in any case, so that a variable with `true` or `12` in it is text as well.
    func candidate(
        _ key: String, in map: YAMLMap?, environment name: EnvironmentName? = nil, flag: (name: String, value: String?)? = nil,
        isText: Bool
    ) -> Candidate? {
        var found: Candidate?
        if let map, let node = map[key] {
            found = Candidate(node: node, reader: file, source: .file(fileName, line: node.line))
            written[map.path(key)] = found?.source
        }
        if let name, let text = variable(name) { found = other(text, .environment(name.rawValue), isText) }
        if let flag, let text = flag.value { found = other(text, .flag(flag.name), isText) }
        return found
    }

    /// The variable's value; an empty one is none, because a compose file writes those for what is not set.
    func variable(_ name: EnvironmentName) -> String? {
        environment[name.rawValue].flatMap { $0.isEmpty ? nil : $0 }
    }

    func other(_ text: String, _ source: SettingSource, _ isText: Bool) -> Candidate {
        let reader = YAMLReader(file: source.description)
        others.append(reader)
        return Candidate(
            node: YAMLNode(content: .scalar(text: text, isPlain: !isText), line: 0, column: 0), reader: reader, source: source)
    }

    // MARK: Typed

    func text(
        _ key: String, in map: YAMLMap?, _ path: String, environment: EnvironmentName? = nil,
        flag: (name: String, value: String?)? = nil
    ) -> Setting<String>? {
        guard let candidate = candidate(key, in: map, environment: environment, flag: flag, isText: true),
            let text = candidate.reader.nonEmptyString(candidate.node, path)
        else { return nil }
        return Setting(text, candidate.source)
    }

    func int(
        _ key: String, in map: YAMLMap?, _ path: String, range: ClosedRange<Int>, environment: EnvironmentName?,
        flag: (name: String, value: String?)?
    ) -> Setting<Int>? {
        guard let candidate = candidate(key, in: map, environment: environment, flag: flag, isText: false),
            let value = candidate.reader.int(candidate.node, path, in: range)
        else { return nil }
        return Setting(value, candidate.source)
    }

    /// An address, `https://` or, on this machine only, `http://`.
    func gatewayURL(_ key: String = "url", in map: YAMLMap?, _ path: String, environment: EnvironmentName) -> Setting<String>? {
        guard let url = text(key, in: map, path, environment: environment) else { return nil }
        guard let parts = NetworkAddress.httpParts(url.value) else {
            return note(url.source, "\(path): expected an address such as https://127.0.0.1:8443")
        }
        guard parts.scheme == "https" || NetworkAddress.isLoopback(parts.host) else {
            return note(url.source, "\(path): http:// is for this machine only (127.0.0.1, ::1, localhost); use https://")
        }
        return url
    }

    /// Notes a mistake at the place that decided a setting.
    @discardableResult
    func note<Value>(_ source: SettingSource, _ message: String) -> Value? {
        switch source {
        case .file(_, let line): file.note(line: line, column: 1, message)
        case .fallback: file.note(line: 1, column: 1, message)
        case .environment, .flag:
            let candidate = other("", source, true)
            candidate.note(message)
        }
        return nil
    }

    func note(_ source: SettingSource, _ message: String) {
        let _: Never? = note(source, message)
    }
}
