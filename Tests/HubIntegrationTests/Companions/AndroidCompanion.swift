import Foundation

/// The companions of `docs/clients` for Android, compiled with the stubs and the driver of `Tests/Companions`.
enum AndroidCompanion {
    private static let bin = "/usr/bin/"
    private static let kotlinLibrary = "/usr/share/java/kotlin-stdlib.jar"
    private static let source = Place.package.appendingPathComponent("Tests/Companions")
    private static let documents = Place.package.appendingPathComponent("docs/clients")

    static var hasJava: Bool { isThere(bin + "javac") }
    static var hasKotlin: Bool { hasJava && isThere(bin + "kotlinc") }

    private static func isThere(_ path: String) -> Bool { FileManager.default.isExecutableFile(atPath: path) }

    /// A command that runs the companion in Java.
    static func java(_ stage: Stage) async throws -> [String] {
        let classes = stage.folder.appendingPathComponent("java")
        try await compile(stage, [documents.appendingPathComponent("Tandem.java"), driver] + stubs(), to: classes)
        return [bin + "java", "-XX:TieredStopAtLevel=1", "-cp", classes.path, "Driver"]
    }

    /// A command that runs the companion in Kotlin, from the same driver: the calls are the same.
    static func kotlin(_ stage: Stage) async throws -> [String] {
        let classes = stage.folder.appendingPathComponent("kotlin")
        try await compile(stage, stubs(), to: classes)
        try await run(
            stage, "kotlinc",
            ["-cp", classes.path, "-jvm-target", "1.8", "-d", classes.path, documents.appendingPathComponent("Tandem.kt").path])
        try await compile(stage, [driver], to: classes, path: [classes.path, kotlinLibrary])
        return [bin + "java", "-XX:TieredStopAtLevel=1", "-cp", "\(classes.path):\(kotlinLibrary)", "Driver"]
    }

    private static let driver = source.appendingPathComponent("Driver.java")

    private static func stubs() -> [URL] {
        let files = FileManager.default.enumerator(at: source.appendingPathComponent("stubs/java"), includingPropertiesForKeys: nil)
        return (files?.compactMap { $0 as? URL } ?? []).filter { $0.pathExtension == "java" }.sorted { $0.path < $1.path }
    }

    /// Warnings are errors, as in the hub.
    private static func compile(_ stage: Stage, _ files: [URL], to classes: URL, path: [String] = []) async throws {
        try await run(
            stage, "javac",
            ["-Xlint:all", "-Werror", "--release", "11", "-d", classes.path]
                + (path.isEmpty ? [] : ["-cp", path.joined(separator: ":")]) + files.map(\.path))
    }

    private static func run(_ stage: Stage, _ program: String, _ arguments: [String]) async throws {
        let process = try stage.start(URL(fileURLWithPath: bin + program), arguments)
        let end = try await process.waitForEnd()
        guard end.code == 0 else { throw ScriptFailure(description: "\(program) failed: \(process.output)\(process.errors)") }
    }
}
