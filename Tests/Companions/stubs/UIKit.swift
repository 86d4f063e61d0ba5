// A stub of UIKit: the declarations that the companion uses, as Apple documents them.

@MainActor open class UIApplication {
    public static let shared = UIApplication()
    public func beginBackgroundTask(
        withName name: String?, expirationHandler handler: (@MainActor @Sendable () -> Void)? = nil
    ) -> UIBackgroundTaskIdentifier { UIBackgroundTaskIdentifier(rawValue: 1) }
    public func endBackgroundTask(_ identifier: UIBackgroundTaskIdentifier) {}
}

public struct UIBackgroundTaskIdentifier: Hashable, RawRepresentable, Sendable {
    public static let invalid = UIBackgroundTaskIdentifier(rawValue: 0)
    public let rawValue: Int
    public init(rawValue: Int) { self.rawValue = rawValue }
}
