package import HubCore

extension Stage {
    /// All that the page shows, as JSON.
    package func snapshot(at now: Int64) -> JSONValue {
        let score = score(at: now)
        return [
            "now": .int(now), "hub": .string(hub.rawValue), "people": .int(Int64(cast.people.count)),
            "score": [
                "told": .int(Int64(score.told)), "told_twice": .int(Int64(score.toldTwice)), "missed": .int(Int64(score.missed)),
                "under_way": .int(Int64(score.underWay)),
            ],
            "phones": .array(cast.phones.map(phone)),
            "questions": .array(asked.suffix(Self.shownMax).map { question($0, at: now) }),
        ]
    }

    private func phone(_ phone: Cast.Phone) -> JSONValue {
        let state = phones[phone.id] ?? PhoneState()
        return [
            "id": .string(phone.id), "user": .string(phone.user), "name": .string(phone.name), "caption": .string(phone.caption),
            "apple": .bool(phone.isApple), "gateway": .string(phone.gateway), "companion": .bool(phone.hasCompanion),
            "network": .string(state.network.rawValue),
            "notes": .array(
                state.notes.map { note in
                    [
                        "nid": .string(note.nid), "number": .int(Int64(note.number)), "title": .string(note.title),
                        "body": .string(note.body), "at": .int(note.shownAt ?? note.acceptedAt), "kept": .bool(note.shownAt == nil),
                    ]
                }),
        ]
    }

    private func question(_ asked: Asked, at now: Int64) -> JSONValue {
        let isTimeUp = isTimeUp(for: asked, at: now)
        var people: [String: JSONValue] = [:]
        for user in cast.people {
            let telling = asked.tellings[user] ?? Telling()
            people[user] = [
                "surface": .string(telling.surface(isTimeUp: isTimeUp).rawValue), "twice": .bool(telling.isTwice),
                "after_ms": telling.toldAt.map { .int($0 - asked.at) } ?? .null,
                "read_on": .array(telling.readings.map { .string($0.phone) }),
                "shown_on": .array(telling.showings.map { .string($0.phone) }),
            ]
        }
        let question = Cast.question(asked.number)
        return [
            "number": .int(Int64(asked.number)), "text": .string(question.text), "answers": .array(question.answers.map(JSONValue.string)),
            "asked_at": .int(asked.at), "event": asked.published.map { .string($0.event) } ?? .null,
            "people": .object(people), "trail": .object(asked.trail),
        ]
    }
}
