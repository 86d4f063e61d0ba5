import Foundation
import HubTesting

struct ConditionNeverMet: Error {}

/// Waits for a condition that another task brings about.
func waitUntil(_ condition: () -> Bool) async throws {
    guard await eventually(condition) else { throw ConditionNeverMet() }
}

/// Makes every write beyond `bytes` of a file fail in this process, as a full disk does; nil lifts that. For exit tests.
func limitFileSize(bytes: rlim_t?) {
    // Otherwise the signal would end the process before the write could fail.
    signal(SIGXFSZ, SIG_IGN)
    let resource = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
    var limit = rlimit()
    precondition(getrlimit(resource, &limit) == 0)
    limit.rlim_cur = bytes ?? limit.rlim_max
    precondition(setrlimit(resource, &limit) == 0)
}
