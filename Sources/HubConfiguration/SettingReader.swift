internal import HubYAML

/// A possible value of a setting, with the reader that notes its mistakes.
struct Candidate {
    let node: YAMLNode
    let reader: YAMLReader
    let source: SettingSource

    func note(_ message: String) { reader.note(node, message) }
}

/// Finds the value in force of a setting: the command line wins over the environment, the environment over the file.
final class SettingReader {
    let file: YAMLReader
    let fileName: String
    private let environment: [String: String]
    /// Readers of values outside the file. Such values follow the same rules, and their mistakes have the name of the variable or option.
    private var others: [YAMLReader] = []
    /// Secrets of apps that can be found by trying, with the names of their settings.
    var shortSecrets: [(setting: Setting<String>, credential: AppCredential)] = []
    /// Whether the file contains a secret.
    var fileHasSecrets = false
    /// Keys in the file, with their places.
    private(set) var written: [String: SettingSource] = [:]

    init(fileName: String, environment: [String: String]) {
        self.fileName = fileName
        self.environment = environment
        file = YAMLReader(file: fileName)
    }

    /// Mistakes of the file by line, then all others in the order in which they were read.
    var mistakes: [YAMLMistake] { file.mistakes + others.flatMap(\.mistakes) }

    /// Finds the value of a setting.
    /// - Parameters:
    ///   - key: member of `map`.
    ///   - flag: name of the option, and its value.
    ///   - isText: whether the value is always text. A variable that contains `true` or `12` is then text as well.
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

    /// The variable's value; nil if empty, because a compose file writes empty variables for unset ones.
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

    /// Reads an address: `https://`, or `http://` on this machine only.
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

    /// Notes a mistake at the source of a setting.
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
