import HubCore
import HubTesting
import Testing

@testable import HubDelivery

/// Apps that come to the screen while their pushes wait in a queue.
@Suite("Pushes to apps that come to the screen")
struct UnseenPushesTests {
    private typealias Stage = DeliveryBookTests.Stage

    private static let together = DeliveryBookTests.yaml.replacing("suppress_scope: device\n", with: "clear_siblings: true\n")

    /// An event that was pushed at once, because the app is in the background.
    private struct Pushed {
        let event: String
        let number: UInt64
        /// Devices that the event is pushed to.
        let devices: [String]
    }

    private func say(_ state: AppState, _ connection: ConnectionID, on stage: Stage) -> [DeliveryBook.Effect] {
        stage.take(.report(loop: 0, .state(connection, state, keepsWorking: false)))
    }

    /// Publishes; the event's frame is behind this cursor.
    private func push(on stage: Stage, cursor: UInt64) throws -> Pushed {
        let effects = stage.publish() + stage.commit()
        let release = try #require(effects.compactMap { if case .letOut(let release) = $0 { release } else { nil } }.first)
        let number = try #require(release.receipt, "the loops are to ask for receipts")
        _ = stage.take(.report(loop: 0, .pinged(events: [number], cursor: cursor)))
        var devices: [String] = []
        for case .push(let pushes) in effects { devices += pushes.map(\.device) }
        return Pushed(event: try #require(release.eventID), number: number, devices: devices)
    }

    private func receipt(_ connection: ConnectionID, upTo cursor: UInt64, on stage: Stage) -> [DeliveryBook.Effect] {
        stage.take(.report(loop: 0, .receipt(connection, cursor: cursor)))
    }

    /// Words of receipts that stop pushes in memory, and the ones that stop them in the store.
    private func stopped(_ effects: [DeliveryBook.Effect]) -> [Comebacks.Word] {
        let words = effects.compactMap { if case .comeback(.confirmed) = $0 { word(of: $0) } else { nil } }
        let stored = effects.count { if case .plan(.late) = $0 { true } else { false } }
        #expect(words.count == stored)
        return words
    }

    private func word(of effect: DeliveryBook.Effect) -> Comebacks.Word? { if case .comeback(let word) = effect { word } else { nil } }

    @Test("the push stops when an app that has read its event comes to the screen, and not before")
    func read() throws {
        let stage = try Stage()
        let phone = stage.attach("phone", slot: 1)
        _ = say(.background, phone, on: stage)
        let pushed = try push(on: stage, cursor: 4)
        #expect(pushed.devices.contains("phone"))
        #expect(stopped(receipt(phone, upTo: 4, on: stage)).isEmpty, "it reads in the background, where nobody sees it")
        #expect(stopped(say(.foreground, phone, on: stage)) == [.confirmed(pushed.event, user: "u", device: "phone")])
        #expect(stopped(say(.foreground, phone, on: stage)).isEmpty, "once is enough")
    }

    @Test("the push waits for the receipt of an app that comes to the screen")
    func awaited() throws {
        let stage = try Stage()
        let phone = stage.attach("phone", slot: 1)
        _ = say(.background, phone, on: stage)
        _ = receipt(phone, upTo: 3, on: stage)
        let pushed = try push(on: stage, cursor: 4)
        #expect(say(.foreground, phone, on: stage).compactMap(word) == [.reads([pushed.event], user: "u")])
        #expect(stopped(receipt(phone, upTo: 3, on: stage)).isEmpty, "what it read before tells nothing")
        #expect(stopped(receipt(phone, upTo: 4, on: stage)) == [.confirmed(pushed.event, user: "u", device: "phone")])
    }

    @Test("an app that leaves the screen again before its receipt keeps its push, and so does one that came to the channel later")
    func unread() throws {
        let stage = try Stage()
        let phone = stage.attach("phone", slot: 1)
        _ = say(.background, phone, on: stage)
        _ = try push(on: stage, cursor: 4)
        _ = say(.foreground, phone, on: stage)
        _ = say(.background, phone, on: stage)
        #expect(stopped(receipt(phone, upTo: 4, on: stage)).isEmpty)
        let other = stage.attach("phone", slot: 2)
        #expect(stopped(receipt(other, upTo: 9, on: stage)).isEmpty, "it was not sent the event")
    }

    @Test("an app that leaves the screen over HTTP, or leaves the channel before the event is written, keeps its push")
    func gone() throws {
        let leaving: [(ConnectionID) -> DeliveryBook.Item] = [
            { _ in .deviceState(app: "1", user: "u", device: "phone", .background, keepsWorking: false) },
            { .report(loop: 0, .detached($0, channel: DeliveryBookTests.channel)) },
        ]
        for leave in leaving {
            let stage = try Stage()
            let phone = stage.attach("phone", slot: 1)
            _ = say(.background, phone, on: stage)
            _ = try push(on: stage, cursor: 4)
            _ = say(.foreground, phone, on: stage)
            _ = stage.take(leave(phone))
            #expect(stopped(receipt(phone, upTo: 4, on: stage)).isEmpty)
        }
    }

    @Test("a replay that was read in the background counts as seen when the app comes to the screen")
    func replayed() throws {
        let stage = try Stage()
        let phone = stage.attach("phone", slot: 1)
        _ = say(.background, phone, on: stage)
        let arrival = try #require(stage.turn().compactMap { if case .read(let arrival) = $0 { arrival } else { nil } }.first)
        let missed = Replay(arrival: arrival, items: [.init(event: "missed", user: "u", recipient: 0)])
        let tokens = stage.take(.replay(missed)).compactMap { if case .replay(let token, _) = $0 { token } else { nil } }
        _ = stage.take(.report(loop: 0, .replayed(phone, tokens: tokens, cursor: 4)))
        #expect(stopped(receipt(phone, upTo: 4, on: stage)).isEmpty, "nobody sees it")
        #expect(stopped(say(.foreground, phone, on: stage)) == [.confirmed("missed", user: "u", device: "phone")])
    }

    @Test("one connection waits for the receipts of its newest events, and the pushes of the others go")
    func many() throws {
        let stage = try Stage()
        let phone = stage.attach("phone", slot: 1)
        _ = say(.background, phone, on: stage)
        let events = try (1...70).map { try push(on: stage, cursor: UInt64($0)).event }
        let words = say(.foreground, phone, on: stage).compactMap(word)
        #expect(words == [.reads(events.suffix(64), user: "u")])
        #expect(stopped(receipt(phone, upTo: 70, on: stage)).count == 64)
    }

    @Test("all devices are spared together, and those that do not show the event are cleared")
    func together() throws {
        let stage = try Stage(yaml: Self.together)
        let phone = stage.attach("phone", slot: 1)
        _ = say(.background, phone, on: stage)
        let pushed = try push(on: stage, cursor: 4)
        #expect(pushed.devices.sorted() == ["pad", "phone"])
        _ = receipt(phone, upTo: 4, on: stage)
        let effects = say(.foreground, phone, on: stage)
        #expect(stopped(effects) == [.confirmed(pushed.event, user: "u", device: nil)])
        let cleared = effects.compactMap { if case .plan(.late(_, let receipt)) = $0 { receipt.clearingFrom } else { nil } }
        #expect(cleared == ["phone"])
    }

    @Test("a push is remembered for ten seconds")
    func forgotten() throws {
        let stage = try Stage()
        let phone = stage.attach("phone", slot: 1)
        _ = say(.background, phone, on: stage)
        _ = try push(on: stage, cursor: 4)
        _ = receipt(phone, upTo: 4, on: stage)
        _ = stage.pass(10_040)
        #expect(stopped(say(.foreground, phone, on: stage)).isEmpty)
    }

    @Test("an awaited event that was read in the background counts as seen when the app comes to the screen")
    func awaitedInBackground() throws {
        let stage = try Stage(yaml: Self.together)
        let phone = stage.attach("phone", slot: 1)
        _ = try push(on: stage, cursor: 4)
        _ = say(.background, phone, on: stage)
        _ = receipt(phone, upTo: 4, on: stage)
        _ = stage.pass(400)
        _ = say(.foreground, phone, on: stage)
        let pushes = stage.pass(8_000).count { if case .plan(.push) = $0 { true } else { false } }
        #expect(pushes == 0)
    }

    @Test("the oldest events are forgotten where people are too many")
    func bounded() {
        var pushes = UnseenPushes(recipientsMax: 10)
        for number in 1...5 as ClosedRange<UInt64> {
            let targets = (0..<4).map { (UnseenPushes.Target(user: "u\($0)", device: nil), $0) }
            pushes.decided(
                number, event: "e\(number)", app: "1", channel: "c", attendedUpTo: [1],
                recipients: Dictionary(uniqueKeysWithValues: targets), now: 0)
        }
        #expect(pushes.eventCount == 2)
    }
}
