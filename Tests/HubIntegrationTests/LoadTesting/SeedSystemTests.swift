import Foundation
import HubCore
import HubJSON
import Testing

/// The bundled definitions of games, shops and wallets, from the HTTP publish to the bytes at the gateways. `docs/seed-systems.md`
/// lists which requirement is shown where.
@Suite struct SeedSystemTests {
    private func run(_ scenario: String, channels: String? = nil) async throws -> JSONValue {
        try await Stage.run { stage in
            let gateways = try await stage.gateways()
            let folder = try channels.map { text in
                URL(fileURLWithPath: try stage.write(text, to: "channels/orders.yaml")).deletingLastPathComponent().path
            }
            let hub = try await stage.hub(gateways: gateways, arguments: folder.map { ["--channels", $0] } ?? [])
            return try await stage.python("load_testing/seeds.py", scenario, hub: hub, gateways: gateways)
        }
    }

    // MARK: Hide & Seek

    @Test("Hide & Seek: each role is told its own text, and seekers never the hider's") func hideAndSeek() async throws {
        let result = try await run("hide_and_seek")
        func alert(_ step: String, _ who: String) -> JSONValue? { result.at(step, who, "alert") }
        func text(_ body: JSONValue) -> JSONValue { ["Hide & Seek", body] }
        func data(_ step: String, _ who: String) -> JSONValue? { result.at(step, who, "data", "data") }
        func flat(_ step: String, _ who: String) -> JSONValue? { result.at(step, who, "data") }
        #expect(result["join_without_token"] == 400 && result["environments"] == ["sandbox", "production"])
        for who in ["hal", "sam", "sia"] {
            #expect(alert("started", who) == text("Game on! The hiding phase has begun."))
            #expect(alert("seeking", who) == text("Seeking phase has begun! Seekers, start hunting."))
        }
        #expect(result["hiding"] == [:])
        #expect(alert("thermometer", "hal") == text("A 500 m thermometer question has started. The seeker is traveling."))
        #expect(alert("radar", "hal") == text("A 3 km radar question has been asked. Your answer timer is running."))
        #expect(alert("answerable", "hal") == text("A thermometer question is ready for your answer."))
        #expect(alert("answered", "sam") == text("Question answered: Closer! A new exclusion zone is on the map."))
        #expect(result["half"] == text("A 0.5 km radar question has been asked. Your answer timer is running."))
        // Enough to act on without asking back: nested for APNs, flat for FCM.
        #expect(
            data("radar", "hal") == [
                "event_type": "question_asked", "game_id": "old-town", "question_id": "q2", "question_type": "radar",
                "status": "answerable",
                "parameters": ["radius_m": 3000],
            ])
        #expect(data("thermometer", "hal")?["status"] == "in_progress" && data("answered", "sam")?["answer"] == "closer")
        #expect(flat("answered", "sia") == data("answered", "sam"))

        let headers = result.at("apns", "headers")
        #expect(
            headers?["apns-push-type"] == "alert" && headers?["apns-priority"] == "10" && headers?["apns-collapse-id"] == "old-town.phase")
        #expect(
            result.at("apns", "aps") == [
                "alert": ["title": "Hide & Seek", "body": "Game on! The hiding phase has begun."], "sound": "default",
                "interruption-level": "time-sensitive", "content-available": 1,
            ])
        #expect(result.at("fcm", "priority") == "HIGH" && result.at("fcm", "notification", "tag") == "old-town.phase")

        // The endgame: an alert for the hider, and for the seekers the state without a word.
        #expect(alert("endgame", "hal") == text("Endgame! Stay where you are.") && result["leak"] == [])
        let silent = result["silent"]
        #expect(silent?.at("headers", "apns-push-type") == "background" && silent?.at("headers", "apns-priority") == "5")
        #expect(silent?["aps"] == ["content-available": 1])
        #expect(silent?.at("fcm", "notification") == nil && silent?.at("fcm", "android", "priority") == "NORMAL")
        #expect(data("endgame", "sam") == ["event_type": "phase_changed", "game_id": "old-town"])

        // The seeker reads the missed events in order, then the live one, and none of the hider's.
        #expect(result["seeker_read"] == ["game_started", "phase_changed", "question_answered", "phase_changed", "question_answered"])
        #expect(
            result["fetched"]?.arrayValue?.compactMap(\.stringValue).sorted() == [
                "game_started", "phase_changed", "phase_changed", "question_answerable", "question_asked", "question_asked",
                "question_asked",
            ])
    }

    @Test func aGameWithoutCredentialsIsPlayedAndLogged() async throws {
        try await Stage.run { stage in
            let hub = try await stage.hub()
            _ = try await stage.python("load_testing/seeds.py", "unconfigured", hub: hub)
            try await eventually("the push to be logged") { hub.log.contains("push.outcome=skipped_unconfigured") }
        }
    }

    @Test func theHubIsTheGamesTimer() async throws {
        let result = try await run("timer")
        #expect(result["early"] == 0 && result["alert"]?[1] == "Seeking phase has begun! Seekers, start hunting.")
    }

    // MARK: Orders

    /// The bundled file with a window that is, or is not, now.
    private func orders(quietNow: Bool) throws -> String {
        let text = try String(contentsOfFile: Place.channels + "/orders.yaml", encoding: .utf8)
        let hour = Calendar(identifier: .gregorian).dateComponents(in: .gmt, from: Date()).hour ?? 0
        let from = (hour + (quietNow ? 23 : 6)) % 24
        func time(_ hour: Int) -> String { String(format: "%02d:00", hour % 24) }
        let window = "quiet_hours: { from: \"\(time(from))\", to: \"\(time(from + 5))\", timezone: UTC }"
        return text.split(separator: "\n", omittingEmptySubsequences: false).map { $0.hasPrefix("quiet_hours:") ? window : String($0) }
            .joined(separator: "\n")
    }

    @Test func orders() async throws {
        let result = try await run("orders", channels: try orders(quietNow: false))
        func body(_ event: String, _ who: String) -> JSONValue? { result.at(event, who, "body") }
        // FCM on Android.
        let message = try required(body("shipped", "android")?["message"], "message")
        #expect(
            message["notification"] == [
                "title": "Your order is on its way", "body": "Order A-1042 has been shipped.", "image": "https://shop.example/a.jpg",
            ])
        #expect(message.at("data", "order_id") == "A-1042" && message.at("data", "deep_link") == "shop://orders/A-1042")
        #expect(message.at("data", "channel_id") == "orders" && message.at("android", "notification", "channel_id") == "orders")
        #expect(
            message.at("android", "priority") == "HIGH" && message.at("android", "notification", "notification_priority") == "PRIORITY_HIGH"
        )
        // APNs: custom keys beside aps, the picture for the service extension.
        let ios = try required(body("shipped", "ios"), "APNs body")
        #expect(ios.at("aps", "mutable-content") == 1 && ios.at("aps", "badge") == 1 && ios.at("aps", "category") == "ORDER")
        #expect(
            ios["image_url"] == "https://shop.example/a.jpg" && ios["order_id"] == "A-1042" && ios["deep_link"] == "shop://orders/A-1042")
        // iOS through FCM: the alert is spelled out, because aps without one might win over the notification.
        let aps = try required(body("shipped", "ios_by_fcm")?.at("message", "apns", "payload", "aps"), "aps")
        #expect(aps.at("alert", "title") == "Your order is on its way" && aps["mutable-content"] == 1)
        // Silent, in both forms.
        let update = try required(body("updated", "android")?["message"], "message")
        #expect(update["notification"] == nil && update.at("android", "priority") == "NORMAL" && update.at("data", "order_id") == "A-1042")
        #expect(
            result.at("updated", "ios", "headers", "apns-push-type") == "background"
                && body("updated", "ios")?["aps"] == ["content-available": 1])
        #expect(body("updated", "ios_by_fcm")?.at("message", "apns", "headers", "apns-priority") == "5")
        // The app shows this one itself, in the device's language where there is a text in it.
        let late = try required(body("delayed", "android")?["message"], "message")
        #expect(late["notification"] == nil && late.at("android", "priority") == "HIGH")
        #expect(late.at("data", "title") == "Your order is late" && late.at("data", "body") == "Order A-1042 comes 2 days later.")
        #expect(late.at("data", "channel_id") == "orders")
        let number = late.at("data", "notification_id")?.stringValue
        #expect(number.flatMap(Int32.init) != nil, "the handler parses an Int")
        #expect(body("delayed", "ios")?.at("aps", "alert", "body") == "Bestellung A-1042 kommt 2 Tage später.")
        let promotion = try required(body("promotion", "android")?["message"], "message")
        #expect(promotion.at("android", "notification", "channel_id") == "promotions" && promotion.at("notification", "image") == nil)
        #expect(body("promotion", "ios")?.at("aps", "interruption-level") == "passive" && body("promotion", "ios")?["image_url"] == nil)
    }

    @Test func promotionsWaitForTheMorning() async throws {
        #expect(try await run("quiet", channels: try orders(quietNow: true)) == ["state": "due", "outcome": "quiet hours", "pushes": 0])
    }

    // MARK: Deployments

    @Test(arguments: [(true, true), (true, false), (false, true), (false, false)])
    func eachDeploymentReachesWhomItCan(hasFCM: Bool, hasAPNs: Bool) async throws {
        let result = try await Stage.run { stage in
            var gateways = try await stage.gateways()
            gateways.settings = gateways.settings.filter { name, _ in
                name.contains("APNS") ? hasAPNs : name.contains("FCM") || name.contains("GOOGLE") ? hasFCM : true
            }
            let hub = try await stage.hub(gateways: gateways)
            return try await stage.python("load_testing/seeds.py", "deployment", hub: hub, gateways: gateways)
        }
        let (fcm, apns): (JSONValue, JSONValue) = (
            hasFCM ? "accepted" : "skipped_unconfigured", hasAPNs ? "accepted" : "skipped_unconfigured"
        )
        #expect(result["states"] == ["android": fcm, "ios": apns, "ios_by_fcm": fcm])
        #expect(result["sent"] == ["android": hasFCM ? 1 : 0, "ios": hasAPNs ? 1 : 0, "ios_by_fcm": hasFCM ? 1 : 0])
    }

    // MARK: LoopRail

    @Test func loopRail() async throws {
        let result = try await run("looprail")
        for who in ["phone", "pad"] {
            #expect(result.at("welcome", who, "alert") == ["Welcome to LoopRail! 🚀", "Your onboarding is complete. Start exploring now."])
            // Always there, also where there is nothing to say.
            #expect(result.at("welcome", who, "data") == ["action": "NONE", "campaign_id": "", "campaign_name": ""])
            let data = result.at("received", who, "data")
            #expect(data?["action"] == "DEPOSIT_RECEIVED" && data?["amount"] == "0.10000000" && data?["asset"] == "BTC")
            #expect(data?["network"] == "bitcoin" && data?["transaction_id"] == "t1" && data?["campaign_id"] == "")
            #expect(result.at("confirmed", who, "data", "action") == "DEPOSIT_CONFIRMED")
            #expect(result.at("initiated", who, "data", "destination") == "bc1q")
        }
        #expect(result["welcome_again"] == [:])
        #expect(result.at("android", "priority") == "HIGH")
        let shown = result.at("android", "notification")
        #expect(
            shown?["channel_id"] == "default" && shown?["color"] == "#4CAF50" && shown?["icon"] == "ic_notification"
                && shown?["sound"] == "default")
        #expect(
            result.at("aps", "mutable-content") == 1 && result.at("aps", "badge") == 1
                && result.at("aps", "alert", "title") == "Welcome to LoopRail! 🚀")
        // Only the session whose token was patched is left of those with consent.
        #expect(result.at("completed", "fresh", "data", "status") == "completed" && result["completed"]?.objectValue?.count == 1)
        #expect(result.at("completed", "fresh", "alert")?[0] == "Withdrawal completed")
        #expect(result["missing"]?[0] == 400 && result["missing"]?[1]?.stringValue?.contains("transaction_id") == true)
    }
}
