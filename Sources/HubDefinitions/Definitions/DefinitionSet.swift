internal import HubCore
package import HubYAML

/// All channel definitions of a server, read and checked together. A reload makes a new set.
package struct DefinitionSet: Sendable, Equatable {
    private let byName: [String: ChannelDefinition]
    /// Definitions with the most particular pattern first, which decides if two match.
    private let ordered: [ChannelDefinition]
    /// Differs where names or texts of the files differ, on every machine in the same way. Nobody is kept from making an equal one.
    package let fingerprint: UInt64

    /// A set without definitions: every channel is an ordinary one.
    package static let empty = DefinitionSet(definitions: [], fingerprint: 0)

    /// Names of all definitions, sorted.
    package var names: [String] { byName.keys.sorted() }

    private init(definitions: [ChannelDefinition], fingerprint: UInt64) {
        self.fingerprint = fingerprint
        byName = Dictionary(definitions.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        ordered = definitions.sorted { ($1.pattern.literalCount, $0.name) < ($0.pattern.literalCount, $1.name) }
    }

    /// Reads definition files.
    /// - Parameter files: name or path of each, as it is to stand in messages, and its text.
    /// - Throws: every mistake of every file. Then no set is made, and an older one stays in force.
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
        // Folders differ between machines.
        let texts = files.map { "\($0.file.split(separator: "/").last ?? "")\0\($0.text)\0" }
        return DefinitionSet(definitions: definitions, fingerprint: Partition.stableHash(texts.sorted().joined()))
    }

    /// Names of the definitions that only one set has or that differ, sorted.
    package func names(differingFrom other: DefinitionSet) -> [String] {
        Set(names + other.names).filter { byName[$0] != other.byName[$0] }.sorted()
    }

    /// The definition of that name, as a session refers to it; nil if unknown.
    package func definition(named name: String) -> ChannelDefinition? { byName[name] }

    /// The definition of a channel, with the values of its placeholders; nil for an ordinary channel. Without a match it costs one
    /// comparison of prefixes per definition.
    package func match(channel: String) -> (definition: ChannelDefinition, placeholders: ChannelPattern.Match)? {
        // Indexes, because a definition is a large value and every channel of every publish is looked up.
        for index in ordered.indices {
            if let match = ordered[index].pattern.match(channel) { return (ordered[index], match) }
        }
        return nil
    }
}
