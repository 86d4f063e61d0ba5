internal import Foundation
internal import Glibc

/// The pipe at the standard input of the demo's child processes. It ends with the demo, whichever way that ended.
///
/// A signal at the parent's death would come when the thread that started the child ends. A pipe ends with the process.
package enum Lifeline {
    private static let triesMax = 200
    private static let tryMicroseconds: UInt32 = 20_000

    /// Ends this process when the demo is gone.
    package static func endWithDemo() {
        Thread.detachNewThread {
            waitForEnd()
            _exit(0)
        }
    }

    /// Waits until the demo is gone, and then removes its temporary folder, if it has not done so itself.
    package static func keep(folder: String) {
        waitForEnd()
        // The hub ends at the same moment, and may still write a file.
        for _ in 0..<triesMax where FileManager.default.fileExists(atPath: folder) {
            DemoFolder.remove(folder)
            usleep(tryMicroseconds)
        }
    }

    private static func waitForEnd() {
        var byte: UInt8 = 0
        while true {
            let count = unsafe read(STDIN_FILENO, &byte, 1)
            if count == 0 || count < 0 && errno != EINTR { return }
        }
    }
}
