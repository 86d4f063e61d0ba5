package import PusherProtocol

/// The apps of one time. An index stands for one app id as long as the process lives, so a later table mixes no two apps' channels.
package struct AppTable: Sendable {
    /// The apps, each at its own index. Removed apps keep their place.
    package let apps: [App]
    private let byKey: [String: Int]
    private let byID: [String: Int]
    /// The ids, where they are few: looking at each is faster than hashing one.
    private let few: [(id: String, index: Int)]
    private static let fewMax = 8

    /// - Parameter apps: with `index` equal to the position in the array.
    package init(_ apps: [App]) {
        // An index is all that the engine compares: a wrong one would mix two apps' channels.
        precondition(apps.indices.allSatisfy { apps[$0].index == $0 }, "the apps' indices are \(apps.map(\.index))")
        self.apps = apps
        let present = apps.filter { !$0.isRemoved }
        byKey = Dictionary(present.flatMap { app in app.secrets.keys.map { ($0, app.index) } }, uniquingKeysWith: { first, _ in first })
        byID = Dictionary(present.map { ($0.id, $0.index) }, uniquingKeysWith: { first, _ in first })
        few = byID.count <= Self.fewMax ? byID.map { ($0.key, $0.value) } : []
    }

    /// Apps that are not removed.
    package var present: some Sequence<App> { apps.lazy.filter { !$0.isRemoved } }
    /// Keys are compared case-sensitively.
    package func app(key: String) -> App? { byKey[key].map { apps[$0] } }
    /// App with this id, enabled or not.
    package func app(id: String) -> App? {
        for index in few.indices where few[index].id == id { return apps[few[index].index] }
        return few.isEmpty ? byID[id].map { apps[$0] } : nil
    }
}
