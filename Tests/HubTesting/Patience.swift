import Foundation

/// How long the tests take that could take any time: `make check` wants them short, `make test` at their full length.
package enum Extent {
    package static let isShort = ProcessInfo.processInfo.environment["TANDEM_TEST_SHORT"] != nil
}

/// How much slower than usual the machine or the build is: a whole factor for every limit that a test waits up to, from the
/// environment. `make test-sanitizers` sets it; 1 when nobody does.
package enum SlowBuild {
    package static let variable = "TANDEM_TEST_PATIENCE"
    package static let factor = ProcessInfo.processInfo.environment[variable].flatMap { Int($0) } ?? 1
    /// The build keeps more memory than the code asks for: a sanitizer's own.
    package static let isSanitized = factor > 1
}
