internal import Foundation
package import HubDelivery
internal import HubYAML

/// Finds and reads the channel definitions on disk.
package enum DefinitionFiles {
    /// The folder that `channels` names, or the bundled one: `./channels`, else the one beside or above the executable.
    /// Nil when nothing was asked for and nothing is there.
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

    /// Every `*.yaml` file of the folder, checked together. Files that begin with a dot are left out.
    package static func load(folder: String) throws(ServerError) -> DefinitionSet {
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".yaml") && !$0.hasPrefix(".") }
                .sorted()
        } catch {
            throw ServerError(
                .badConfiguration, "cannot read the channel definitions in \(folder): does the folder exist and may it be read?")
        }
        var files: [(file: String, text: String)] = []
        for name in names {
            let path = folder + "/" + name
            guard let data = FileManager.default.contents(atPath: path), let text = String(validating: data, as: UTF8.self) else {
                throw ServerError(.badConfiguration, "cannot read \(path): it has to be a readable file of UTF-8 text")
            }
            files.append((path, text))
        }
        do {
            return try DefinitionSet.load(files)
        } catch {
            throw ServerError(.badConfiguration, "\(error)")
        }
    }
}
