internal import HubCore
internal import HubCrypto

/// The people of the demo, their phones, and the questions of its quiz master.
package struct Cast: Sendable {
    /// One phone, with a device registration of its own.
    package struct Phone: Sendable {
        /// Its id on the page and at the hub, for instance `cleo-2`.
        package let id: String
        /// Its owner's user id.
        package let user: String
        /// Its owner's name.
        package let name: String
        /// The caption beneath it.
        package let caption: String
        /// True: an iPhone, reached by APNs. False: an Android phone, reached by FCM.
        package let isApple: Bool
        /// Whether its app tells by Tandem's companion that it is on the screen.
        package let hasCompanion: Bool
        /// The device token that its gateway gave it.
        package let token: String

        /// The short name of its gateway, for people.
        package var gateway: String { isApple ? "APNs" : "FCM" }
    }

    /// A question of the quiz, with its answers.
    package struct Question: Sendable {
        package let text: String
        package let answers: [String]
    }

    package static let session = "live"
    package static let channel = "presence-demo-live"
    package static let event = "question"

    /// In the order of the page.
    package let phones: [Phone]
    /// User ids, each once, in the order of their phones.
    package let people: [String]

    /// Four phones of three people, with fresh device tokens.
    package init() {
        func phone(_ id: String, _ name: String, _ caption: String, isApple: Bool, hasCompanion: Bool = true) -> Phone {
            let token = isApple ? Hex.encode(SecureRandom.bytes(32)) : "\(id):APA91b\(Hex.encode(SecureRandom.bytes(60)))"
            return Phone(
                id: id, user: name.lowercased(), name: name, caption: caption, isApple: isApple, hasCompanion: hasCompanion, token: token)
        }
        phones = [
            phone("ana", "Ana", "Ana", isApple: true),
            phone("ben", "Ben", "Ben", isApple: false, hasCompanion: false),
            phone("cleo", "Cleo", "Cleo", isApple: true),
            phone("cleo-2", "Cleo", "Cleo's second phone", isApple: false),
        ]
        var people: [String] = []
        for phone in phones where !people.contains(phone.user) { people.append(phone.user) }
        self.people = people
    }

    /// The phone with this id; nil for a stranger's.
    package func phone(_ id: String) -> Phone? { phones.first { $0.id == id } }

    /// The phone with this device token; nil for none.
    package func phone(token: String) -> Phone? { phones.first { $0.token == token } }

    /// The question with this number, from 1; after the last one they begin again.
    package static func question(_ number: Int) -> Question { questions[(max(1, number) - 1) % questions.count] }

    private static let questions = [
        Question(text: "Which planet has the most moons?", answers: ["Saturn", "Jupiter", "Neptune"]),
        Question(text: "How many hearts has an octopus?", answers: ["One", "Three", "Eight"]),
        Question(text: "Which river is the longest in Europe?", answers: ["Danube", "Rhine", "Volga"]),
        Question(text: "In which year did people first walk on the Moon?", answers: ["1959", "1969", "1979"]),
        Question(text: "Which metal is liquid at room temperature?", answers: ["Tin", "Lead", "Mercury"]),
        Question(text: "How many strings has a violin?", answers: ["Four", "Five", "Six"]),
        Question(text: "Which is the smallest bone of the body?", answers: ["Stirrup", "Kneecap", "Collarbone"]),
        Question(text: "Which sea has no coast?", answers: ["Sargasso Sea", "Coral Sea", "Black Sea"]),
    ]
}
