internal import HubCore
internal import HubDefinitions
internal import HubDelivery

/// Facts of one node for a listener of another one.
struct LivePiece: Sendable, Equatable {
    /// Name of the node that noted them.
    var node: String
    var facts: [LiveFact]
    /// Facts that were left out.
    var skipped: UInt64

    /// First number of a piece, which a change of its shape raises. A node reads no other shape.
    private static let shape: UInt64 = 1

    init(node: String, facts: [LiveFact], skipped: UInt64) {
        self.node = node
        self.facts = facts
        self.skipped = skipped
    }

    var bytes: [UInt8] {
        var writer = PackedWriter()
        writer.add(Self.shape)
        writer.add(node)
        writer.add(skipped)
        writer.add(facts) { $1.write(to: &$0) }
        return writer.bytes
    }

    /// Nil for another shape.
    init?(bytes: ArraySlice<UInt8>) {
        var reader = PackedReader(bytes)
        do throws(PackedReader.Malformed) {
            guard try reader.number() == Self.shape else { return nil }
            node = try reader.text()
            skipped = try reader.number()
            facts = try reader.list(LiveFact.read)
        } catch {
            return nil
        }
    }
}

extension LiveFilter {
    /// The filter, with a number that grows while its node lives.
    func bytes(beat: UInt64) -> [UInt8] {
        var writer = PackedWriter()
        writer.add(app)
        writer.add(channel)
        writer.add(user)
        writer.add(kinds.map(\.rawValue).sorted()) { $0.add($1) }
        writer.add(beat)
        return writer.bytes
    }

    /// Nil for bytes of another shape. Kinds that this build does not know are left out.
    init?(bytes: ArraySlice<UInt8>) {
        var reader = PackedReader(bytes)
        do throws(PackedReader.Malformed) {
            let (app, channel, user) = (try reader.text(), try reader.optionalText(), try reader.optionalText())
            self.init(app: app, channel: channel, user: user, kinds: Set(try reader.texts().compactMap(LiveFact.Kind.init)))
        } catch {
            return nil
        }
    }
}

extension LiveFact {
    fileprivate func write(to writer: inout PackedWriter) {
        writer.add(at)
        writer.add(channel)
        writer.add(user)
        switch detail {
        case .join(let socket):
            writer.add(0)
            writer.add(socket)
        case .leave(let socket):
            writer.add(1)
            writer.add(socket)
        case .event(let name, let id, let policy, let recipients, let sequence):
            writer.add(2)
            writer.add(name)
            writer.add(id)
            writer.add(policy?.rawValue)
            writer.add(recipients) { $0.add($1) }
            writer.add(sequence) { $0.add($1) }
        case .decision(let event, let note):
            writer.add(3)
            writer.add(event)
            writer.add(Int(note.code))
        case .receipt(let event, let after):
            writer.add(4)
            writer.add(event)
            writer.add(after)
        case .push(let event, let nid, let device, let state, let answer, let attempt):
            writer.add(5)
            for text in [event, nid, device, state.rawValue] { writer.add(text) }
            writer.add(answer)
            writer.add(attempt)
        }
    }

    fileprivate static func read(_ reader: inout PackedReader) throws(PackedReader.Malformed) -> LiveFact {
        let (at, channel, user) = (try reader.signed(), try reader.optionalText(), try reader.optionalText())
        return LiveFact(at: at, channel: channel, user: user, try detail(&reader))
    }

    private static func detail(_ reader: inout PackedReader) throws(PackedReader.Malformed) -> Detail {
        switch try reader.number() {
        case 0: return .join(socket: try reader.text())
        case 1: return .leave(socket: try reader.optionalText())
        case 2:
            return .event(
                name: try reader.text(), id: try reader.optionalText(), policy: try reader.optionalText().flatMap { Policy(rawValue: $0) },
                recipients: try reader.optional { reader throws(PackedReader.Malformed) in try reader.count() },
                sequence: try reader.optional { reader throws(PackedReader.Malformed) in try reader.signed() })
        case 3: return .decision(event: try reader.text(), RecipientNote(code: UInt8(clamping: try reader.count())))
        case 4: return .receipt(event: try reader.text(), after: try reader.signed())
        case 5:
            let (event, nid, device) = (try reader.text(), try reader.text(), try reader.text())
            guard let state = PushState(rawValue: try reader.text()) else { throw PackedReader.Malformed() }
            return .push(
                event: event, nid: nid, device: device, state, answer: try reader.optionalText(), attempt: try reader.count())
        default: throw PackedReader.Malformed()
        }
    }
}
