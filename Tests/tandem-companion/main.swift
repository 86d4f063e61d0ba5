import Foundation
import TandemClient

// The Swift companion as a program: tandem-companion HUB KEY CHANNEL TOKEN. Each line of its input is a call, and is answered by a line.

let arguments = CommandLine.arguments
guard arguments.count == 5, let hub = URL(string: arguments[1]) else {
    print("usage: tandem-companion HUB KEY CHANNEL TOKEN")
    exit(64)
}
let pusher = StockPusher(hub: hub, key: arguments[2], channel: arguments[3], bearer: arguments[4])
let companion = TandemCompanion(channel: pusher.channel, hub: hub) { pusher.bearer }
pusher.channel.bind(eventName: "pusher:subscription_succeeded") { _ in printLine("subscribed") }
pusher.connect()

/// At once, whatever standard output is.
func printLine(_ text: String) { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }

@MainActor func answer(_ words: [String]) async -> String {
    let argument = words.count > 1 ? words[1] : ""
    switch words.first {
    case "foreground": companion.foreground()
    case "background": await companion.background()
    case "received": return String(await companion.received(argument))
    case "push-token": return String(await companion.pushToken(argument.isEmpty ? nil : argument))
    case "bearer": pusher.bearer = argument
    case "drop": pusher.drop()
    case "events": return json(pusher.events)
    case "end": await companion.end()
    case "leave": pusher.leave()
    default: return "unknown"
    }
    return "done"
}

let lines = AsyncStream<String> { continuation in
    Thread.detachNewThread {
        while let line = readLine() { continuation.yield(line) }
        continuation.finish()
    }
}
for await line in lines { printLine(await answer(line.split(separator: " ").map(String.init))) }
