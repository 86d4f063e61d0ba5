import Foundation
import HubCore
import HubJSON
import HubTesting

/// HubJSON compared with the grammar, with Foundation and with itself.
enum JSONTarget {
    @Sendable static func make() -> FuzzTarget {
        let source = InputSource("json", tokens: SeededRandom.jsonTokens) { random in
            if random.chance(1, in: 200) { return Array(deep(&random).utf8) }
            return Array((random.space() + random.json() + random.space()).utf8)
        }
        let parser = JSONParser(capacityBytes: FuzzTarget.inputBytesMax, depthMax: JSONParser.depthMaxDefault)
        let second = JSONParser(capacityBytes: FuzzTarget.inputBytesMax, depthMax: JSONParser.depthMaxDefault)
        var count = 0
        return FuzzTarget(input: source.draw) { bytes in
            count += 1
            return check(bytes, parser, second, asksFoundation: count % 16 == 0 && bytes.count < 512)
        }
    }

    private static func deep(_ random: inout SeededRandom) -> String {
        let depth = JSONParser.depthMaxDefault - 2 + random.below(5)
        let isArray = random.chance(1, in: 2)
        return String(repeating: isArray ? "[" : "{\"a\":", count: depth) + random.json(depth: 1)
            + String(repeating: isArray ? "]" : "}", count: depth)
    }

    private static func check(_ bytes: [UInt8], _ parser: JSONParser, _ second: JSONParser, asksFoundation: Bool) -> String? {
        let judgement = JSONJudge.accepts(bytes, depthMax: JSONParser.depthMaxDefault)
        let root: JSONElement
        do throws(JSONError) {
            root = try parser.parse(bytes)
        } catch {
            if judgement == true { return "refused, though the grammar allows it: \(error)" }
            return error.message.isEmpty || error.message.utf8.count > 200 ? "the refusal is no short sentence: \(error.message)" : nil
        }
        if judgement == false { return "accepted, though the grammar does not allow it" }
        if asksFoundation, let reason = foundation(bytes) { return "Foundation refuses it: \(reason)" }
        return again(root, parser, second)
    }

    /// Checks that rewritten text parses as the same value, as a whole and member by member.
    private static func again(_ root: JSONElement, _ parser: JSONParser, _ second: JSONParser) -> String? {
        let value = root.value
        guard let serialized = parse(value.serialized(), second) else { return "the value written anew does not parse" }
        if serialized != value { return "the value written anew is another" }
        guard let minified = parse(root.minified, second) else { return "the minified text does not parse" }
        if minified != value { return "the minified text has another value" }
        let source = parser.source(of: root)
        var compact: [UInt8] = []
        source.appendCompact(to: &compact)
        guard parse(compact, second) == value else { return "the compact text has another value" }
        if let reason = literal(source, compact, second) { return reason }
        // Names with different bytes that Swift considers equal become one member of a value.
        let areNamesPlain =
            value.objectValue.map { $0.count == Set(root.members.compactMap(\.key.string).map { Array($0.utf8) }).count } ?? true
        for member in root.members where areNamesPlain {
            guard let name = member.key.string, let part = source.member(name) else { return "a member is not found by its name" }
            guard parse(part.bytes, second) == value[name] else { return "a member's text has another value" }
            if let reason = literal(part, nil, second) { return reason }
        }
        for (child, part) in zip(root.elements, source.elements) where parse(part.bytes, second) != child.value {
            return "an element's text has another value"
        }
        return nil
    }

    /// The string literal of a value: a string's own token, or the compact text of anything else.
    private static func literal(_ source: JSONSource, _ compact: [UInt8]?, _ second: JSONParser) -> String? {
        var bytes: [UInt8] = []
        let count = source.appendStringLiteral(to: &bytes)
        guard case .string(let content) = parse(bytes, second) else { return "the string literal is no JSON string" }
        if content.utf8.count != count { return "the string literal's size is \(content.utf8.count), not \(count)" }
        if source.element.kind == .string { return bytes == source.bytes ? nil : "a string's token was changed" }
        if let compact, Array(content.utf8) != compact { return "the literal's content is not the compact text" }
        return nil
    }

    private static func parse(_ bytes: [UInt8], _ parser: JSONParser) -> JSONValue? {
        do { return try parser.parse(bytes).value } catch { return nil }
    }

    /// Why Foundation refuses JSON that HubJSON accepts. Foundation guesses other encodings at null bytes or a byte order mark.
    private static func foundation(_ bytes: [UInt8]) -> String? {
        guard !bytes.contains(0), !bytes.starts(with: [0xEF, 0xBB, 0xBF]) else { return nil }
        do {
            _ = try JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)
            return nil
        } catch {
            return "\(error)"
        }
    }
}
