internal import Foundation
package import HubDefinitions
internal import HubYAML

/// Finds and reads the channel definitions on disk.
package enum DefinitionFiles {
    /// The configured folder, or the bundled one: `./channels`, else the one next to or above the executable. Nil if neither exists.
    package static func folder(configured: String?) -> String? {
        if let configured { return configured }
        let executable = URL(fileURLWithPath: CommandLine.arguments.first ?? "tandem").resolvingSymlinksInPath().deletingLastPathComponent()
        let candidates = [
            "channels", executable.appendingPathComponent("channels").path,
            executable.appendingPathComponent("../share/tandem/channels").standardized.path,
        ]
        return candidates.first { candidate in
            var isFolder: ObjCBool = false
            return unsafe FileManager.default.fileExists(atPath: candidate, isDirectory: &isFolder) && isFolder.boolValue
        }
    }

    /// A folder or file that cannot be read, or every mistake of the files: a message for the operator.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// Reads every `*.yaml` file of the folder, and checks all together. Files that begin with a dot are ignored.
    package static func load(folder: String) throws(Failure) -> DefinitionSet {
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".yaml") && !$0.hasPrefix(".") }
                .sorted()
        } catch {
            throw Failure(description: "cannot read the channel definitions in \(folder): does the folder exist and may it be read?")
        }
        var files: [(file: String, text: String)] = []
        for name in names {
            let path = folder + "/" + name
            guard let data = FileManager.default.contents(atPath: path), let text = String(validating: data, as: UTF8.self) else {
                throw Failure(description: "cannot read \(path): it has to be a readable file of UTF-8 text")
            }
            files.append((path, text))
        }
        do {
            return try DefinitionSet.load(files)
        } catch {
            throw Failure(description: "\(error)")
        }
    }
}
