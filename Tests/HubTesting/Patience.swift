import Foundation

/// The length of tests that could run for any time: short in `make check`, full in `make test`.
package enum Extent {
    /// Whether `TANDEM_TEST_SHORT` is set.
    package static let isShort = ProcessInfo.processInfo.environment["TANDEM_TEST_SHORT"] != nil
}

/// A whole factor for all time limits of tests, for slow machines and builds. Read from the environment, 1 by default; `make
/// test-sanitizers` sets it.
package enum SlowBuild {
    package static let variable = "TANDEM_TEST_PATIENCE"
    package static let factor = ProcessInfo.processInfo.environment[variable].flatMap { Int($0) } ?? 1
    /// Whether a sanitizer's build keeps more memory than the code asks for.
    package static let isSanitized = factor > 1
}
