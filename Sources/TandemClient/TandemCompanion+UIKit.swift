#if canImport(UIKit) && !os(watchOS)
public import UIKit

extension TandemCompanion {
    /// The app left the screen: it runs on until the hub has answered, or the system's time is up.
    public func enterBackground(_ application: UIApplication = .shared, keepsWorking: Bool = false) {
        let time = BackgroundTime(application)
        Task {
            await background(keepsWorking: keepsWorking)
            time.end()
        }
    }
}

/// Time that the system grants an app behind the screen.
@MainActor private final class BackgroundTime {
    private let application: UIApplication
    private var task = UIBackgroundTaskIdentifier.invalid

    init(_ application: UIApplication) {
        self.application = application
        task = application.beginBackgroundTask(withName: "tandem") { [weak self] in self?.end() }
    }

    func end() {
        if task != .invalid { application.endBackgroundTask(task) }
        task = .invalid
    }
}
#endif
