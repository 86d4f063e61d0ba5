import ArgumentParser
import HubCore
import HubJSON
import HubServer

/// Settings of apps as the command line has them.
enum AppSettings {
    /// Members of a request's body.
    /// - Parameter arguments: `name=value`; a value that is JSON is sent as such, and any other as a list of words between commas.
    static func object(_ arguments: [String]) throws(ValidationError) -> [String: JSONValue] {
        var members: [String: JSONValue] = [:]
        for argument in arguments {
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[0].isEmpty else {
                throw ValidationError("a setting is name=value, such as max_connections=500; it was '\(argument)'")
            }
            let text = String(parts[1])
            members[String(parts[0])] = (try? JSONValue(parsing: text)) ?? .array(text.split(separator: ",").map { .string(String($0)) })
        }
        return members
    }

    /// Seconds of a text such as 90, 15m, 36h or 2d; nil for any other text.
    static func seconds(_ text: String) -> Int64? {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        let unit = text.last.flatMap { units[$0] }
        guard let number = Int64(unit == nil ? text[...] : text.dropLast()), number >= 0 else { return nil }
        let (seconds, isTooLarge) = number.multipliedReportingOverflow(by: unit ?? 1)
        return isTooLarge ? nil : seconds
    }

    /// The new key of an answer, as configuration variables.
    static func credentials(_ answer: JSONValue) -> String {
        """
        TANDEM_APP_ID=\(answer["id"]?.stringValue ?? "")
        TANDEM_APP_KEY=\(answer["key"]?.stringValue ?? "")
        TANDEM_APP_SECRET=\(answer["secret"]?.stringValue ?? "")
        """
    }

    /// Changes an app, and prints what is in force.
    static func change(_ options: Apps.Options, _ app: String, _ settings: [String: JSONValue]) async throws {
        do {
            let answer = try await options.ask("PATCH", "/\(app)", body: .object(settings))
            if options.json { return print(answer.text) }
            for name in settings.keys.sorted() { print("\(name): \(answer[name]?.text ?? "-")") }
        } catch {
            throw Tandem.fail(error)
        }
    }
}
