package import HubYAML

/// All channel definitions of a server, read and checked together. A reload makes a new set.
package struct DefinitionSet: Sendable, Equatable {
    private let byName: [String: ChannelDefinition]
    /// The most particular pattern first: what decides when two match.
    private let ordered: [ChannelDefinition]

    /// A set without definitions: every channel is an ordinary one.
    package static let empty = DefinitionSet(definitions: [])

    /// Sorted.
    package var names: [String] { byName.keys.sorted() }

    private init(definitions: [ChannelDefinition]) {
        byName = Dictionary(definitions.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        ordered = definitions.sorted { ($1.pattern.literalCount, $0.name) < ($0.pattern.literalCount, $1.name) }
    }

    /// Reads definition files.
    /// - Parameter files: each with its name or path, as it is to stand in messages, and its text.
    /// - Throws: every mistake of every file; then there is no set at all, and an older one stays in force.
    package static func load(_ files: [(file: String, text: String)]) throws(YAMLError) -> DefinitionSet {
        var definitions: [ChannelDefinition] = []
        var mistakes: [YAMLMistake] = []
        for (file, text) in files {
            do throws(YAMLError) {
                definitions.append(try ChannelDefinitionParser.parse(text, file: file))
            } catch {
                mistakes += error.mistakes
            }
        }
        var shapes: [String: ChannelDefinition] = [:]
        var names: [String: ChannelDefinition] = [:]
        for definition in definitions {
            if let other = names.updateValue(definition, forKey: definition.name) {
                mistakes.append(
                    YAMLMistake(
                        file: definition.file, line: 1, column: 1,
                        message: "the definition \"\(definition.name)\" exists already in \(other.file); rename one of the files")
                )
            } else if let other = shapes.updateValue(definition, forKey: definition.pattern.shape) {
                mistakes.append(
                    YAMLMistake(
                        file: definition.file, line: 1, column: 1,
                        message:
                            "its channel \(definition.pattern) matches the same names as \(other.pattern) in \(other.file); change one of them"
                    ))
            }
        }
        guard mistakes.isEmpty else { throw YAMLError(mistakes) }
        return DefinitionSet(definitions: definitions)
    }

    /// Names of the definitions that are only in one of the two sets or different in them, sorted.
    package func names(differingFrom other: DefinitionSet) -> [String] {
        Set(names + other.names).filter { byName[$0] != other.byName[$0] }.sorted()
    }

    /// The definition that a session names.
    package func definition(named name: String) -> ChannelDefinition? { byName[name] }

    /// The definition that a channel belongs to, with what its placeholders stand for. Costs one comparison of prefixes for each
    /// definition when nothing matches.
    package func match(channel: String) -> (definition: ChannelDefinition, placeholders: ChannelPattern.Match)? {
        // By index, because a definition is a large value, and every channel of every publish is asked about.
        for index in ordered.indices {
            if let match = ordered[index].pattern.match(channel) { return (ordered[index], match) }
        }
        return nil
    }
}
