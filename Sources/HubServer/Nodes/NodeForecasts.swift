internal import HubAPI
internal import HubCore
internal import HubDefinitions
internal import HubDelivery
internal import PusherProtocol
internal import Synchronization

/// A question about an event that is not published, for the owner of its channel.
struct ForwardedForecast: Sendable {
    /// Names the question to its sender.
    var ticket: UInt64
    var app: String
    var name: String
    var channel: String
    var data: DataLiteral
    var excluded: SocketID?
}

/// An owner's answer to a `ForwardedForecast`.
enum ForecastAnswer: Sendable {
    case decided(EventForecast)
    case refused(PublishRefusal)
}

/// Questions of this node for the owners of channels, until they have answered. Any thread.
final class NodeForecasts: Sendable {
    typealias Send = @Sendable (ForwardedForecast, _ done: @escaping @Sendable (Bool) -> Void) -> Void

    private struct Waiting {
        let command: PublishCommand
        /// Answers, by the channel's index in the request.
        var answers: [Int: EventForecast]
    }

    private struct State {
        var waiting: [UInt64: Waiting] = [:]
        /// The question and the channel's index that a ticket stands for.
        var tickets: [UInt64: (question: UInt64, channel: Int)] = [:]
        var lastTicket: UInt64 = 0
    }

    /// Questions that may wait; one more is refused.
    static let waitingMax = 64
    /// Time for the owners to answer.
    static let answerMax: Duration = .seconds(3)

    private let state = Mutex(State())
    private let sending = Guarded<Send?>(nil)

    func connect(_ send: @escaping Send) { sending.withLock { $0 = send } }

    /// Asks the owners of the request's channels.
    /// - Returns: false: too many wait already.
    func ask(_ command: PublishCommand) -> Bool {
        guard let send = sending.withLock({ $0 }), let request = command.requests.first else { return false }
        let forwarded = state.withLock { state -> (question: UInt64, [ForwardedForecast])? in
            guard state.waiting.count < Self.waitingMax else { return nil }
            state.lastTicket += 1
            let question = state.lastTicket
            state.waiting[question] = Waiting(command: command, answers: [:])
            let forwarded = request.channels.enumerated().map { index, channel in
                state.lastTicket += 1
                state.tickets[state.lastTicket] = (question, index)
                return ForwardedForecast(
                    ticket: state.lastTicket, app: command.app.id, name: request.name, channel: channel.text, data: request.data,
                    excluded: request.excludedSocketID)
            }
            return (question, forwarded)
        }
        guard let forwarded else { return false }
        for forecast in forwarded.1 { send(forecast) { [weak self] in if !$0 { self?.giveUp(forwarded.question) } } }
        Task { [weak self] in
            try? await Task.sleep(for: Self.answerMax)
            self?.giveUp(forwarded.question)
        }
        return true
    }

    /// An owner's answer.
    func answered(_ ticket: UInt64, _ answer: ForecastAnswer) {
        switch answer {
        case .refused(let refusal):
            guard let question = state.withLock({ $0.tickets[ticket]?.question }) else { return }
            finish(question, .failure(refusal))
        case .decided(let forecast):
            let complete = state.withLock { state -> (UInt64, Waiting)? in
                guard let (question, channel) = state.tickets.removeValue(forKey: ticket) else { return nil }
                state.waiting[question]?.answers[channel] = forecast
                guard let waiting = state.waiting[question], let request = waiting.command.requests.first,
                    waiting.answers.count == request.channels.count
                else { return nil }
                return (question, waiting)
            }
            guard let (question, waiting) = complete else { return }
            var outcome = PublishOutcome(events: [])
            outcome.forecasts = waiting.answers.sorted { $0.key < $1.key }.map(\.value)
            finish(question, .success([outcome]))
        }
    }

    private func giveUp(_ question: UInt64) { finish(question, .failure(Self.noOwner)) }

    private func finish(_ question: UInt64, _ result: Result<[PublishOutcome], PublishRefusal>) {
        let waiting = state.withLock { state in
            state.tickets = state.tickets.filter { $0.value.question != question }
            return state.waiting.removeValue(forKey: question)
        }
        waiting?.command.respond(result)
    }

    private static let noOwner = PublishRefusal(
        status: 503, sentence: "the node that decides about the channel did not answer: try again in a moment")
}

/// The bytes of a question: its values in the order of their declaration.
extension ForwardedForecast {
    func write(to writer: inout PackedWriter) {
        writer.add(ticket)
        for text in [app, name, channel] { writer.add(text) }
        writer.add(data)
        writer.add(excluded?.description)
    }

    init(_ reader: inout PackedReader) throws(PackedReader.Malformed) {
        ticket = try reader.number()
        (app, name, channel) = (try reader.text(), try reader.text(), try reader.text())
        data = try reader.data()
        excluded = try reader.optionalText().flatMap(SocketID.init)
    }
}

/// The bytes of an answer.
extension ForecastAnswer {
    /// Bytes of an answer, far below the bound of a message.
    private static let bytesMax = 500_000

    /// The answer with as many recipients as fit one message.
    var fitting: ForecastAnswer {
        guard case .decided(var forecast) = self else { return self }
        var (bytes, count) = (0, 0)
        for recipient in forecast.recipients {
            bytes += recipient.user.utf8.count + recipient.devices.reduce(32) { $0 + $1.utf8.count + 8 }
            if bytes > Self.bytesMax { break }
            count += 1
        }
        forecast.recipients = Array(forecast.recipients.prefix(count))
        return .decided(forecast)
    }

    func write(to writer: inout PackedWriter) {
        switch self {
        case .decided(let forecast):
            writer.add(0)
            writer.add(forecast.channel)
            writer.add(forecast.definition)
            writer.add(forecast.policy?.rawValue)
            writer.add(forecast.lifetimeMilliseconds.map { UInt64(clamping: $0) }) { $0.add($1) }
            writer.add(forecast.choices.sorted { $0.key.rawValue < $1.key.rawValue }) { writer, entry in
                writer.add(Int(entry.key.rawValue))
                writer.add(entry.value)
            }
            writer.add(forecast.recipients) { writer, recipient in
                writer.add(recipient.user)
                writer.add(Int(recipient.note.code))
                writer.add(recipient.waitMilliseconds.map { UInt64(clamping: $0) }) { $0.add($1) }
                writer.add(recipient.devices) { $0.add($1) }
            }
        case .refused(let refusal):
            writer.add(1)
            writer.add(refusal.status)
            writer.add(refusal.sentence)
        }
    }

    static func read(_ reader: inout PackedReader) throws(PackedReader.Malformed) -> ForecastAnswer {
        switch try reader.number() {
        case 0:
            var forecast = EventForecast(channel: try reader.text(), definition: try reader.optionalText())
            forecast.policy = try reader.optionalText().flatMap { Policy(rawValue: $0) }
            forecast.lifetimeMilliseconds = try reader.optionalNumber().map { Int64(clamping: $0) }
            let choices = try reader.list { reader throws(PackedReader.Malformed) in
                (RecipientNote.Choice(rawValue: UInt8(clamping: try reader.count())) ?? .other, try reader.count())
            }
            forecast.choices = Dictionary(choices, uniquingKeysWith: +)
            forecast.recipients = try reader.list { reader throws(PackedReader.Malformed) in
                EventForecast.Recipient(
                    user: try reader.text(), note: RecipientNote(code: UInt8(clamping: try reader.count())),
                    waitMilliseconds: try reader.optionalNumber().map { Int64(clamping: $0) }, devices: try reader.texts())
            }
            return .decided(forecast)
        case 1: return .refused(PublishRefusal(status: try reader.count(), sentence: try reader.text()))
        default: throw .init()
        }
    }
}
