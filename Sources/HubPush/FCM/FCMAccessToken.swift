internal import HubCore
internal import HubCrypto
internal import HubHTTPClient
internal import HubJSON

/// Reason for a missing access token.
struct AccessTokenFault: Error, Equatable {
    /// False: waiting does not help; the account or the clock needs attention.
    var isRetryable: Bool
    var after: Duration?
    /// Free of secrets.
    var reason: String
    /// The token endpoint fails to answer, or reports its own failure.
    var isOutage = false
}

/// Schedule for fetching and using access tokens: a pure state machine over the monotonic clock, in nanoseconds.
struct AccessTokenCache: Equatable {
    /// Remaining lifetime that starts a fetch, while the old token stays in use.
    static let refreshBefore: UInt64 = 5 * 60 * nanosecondsPerSecond
    /// Remaining lifetime below which a token may expire in transit.
    static let unusableBefore: UInt64 = 10 * nanosecondsPerSecond
    static let holdFirst: UInt64 = 10 * nanosecondsPerSecond
    static let holdMax: UInt64 = 600 * nanosecondsPerSecond

    enum Decision: Equatable {
        /// - fetch: also fetch a new token in the background.
        case use(String, fetch: Bool)
        case wait(fetch: Bool)
        case fail(AccessTokenFault)
    }

    private var token: String?
    private var expiresAt: UInt64 = 0
    private var isFetching = false
    private var fault: AccessTokenFault?
    private var failures = 0
    private var noFetchBefore: UInt64 = 0

    /// Decides what to do. With `fetch`, the caller and no other one must make the fetch.
    mutating func decide(now: UInt64) -> Decision {
        let mayFetch = !isFetching && now >= noFetchBefore
        if let token, now + Self.unusableBefore < expiresAt {
            let fetch = mayFetch && now + Self.refreshBefore > expiresAt
            if fetch { isFetching = true }
            return .use(token, fetch: fetch)
        }
        if isFetching { return .wait(fetch: false) }
        if mayFetch {
            isFetching = true
            return .wait(fetch: true)
        }
        // The fault's first waiters got it as it is; later callers may retry.
        let remaining = Duration.nanoseconds(Int64(clamping: noFetchBefore - now))
        return .fail(
            AccessTokenFault(
                isRetryable: true, after: remaining, reason: fault?.reason ?? "no access token", isOutage: fault?.isOutage ?? false))
    }

    mutating func arrived(_ token: String, lifetime: UInt64, now: UInt64) {
        self = AccessTokenCache()
        self.token = token
        expiresAt = now + lifetime
    }

    mutating func failed(_ fault: AccessTokenFault, now: UInt64) {
        isFetching = false
        self.fault = fault
        failures += 1
        let doubled = min(Self.holdMax, Self.holdFirst << UInt64(min(failures - 1, 10)))
        let asked = UInt64(clamping: fault.after?.components.seconds ?? 0) * nanosecondsPerSecond
        noFetchBefore = now + (fault.isRetryable ? max(doubled, min(asked, Self.holdMax)) : Self.holdMax)
    }

    /// Forgets a token that FCM refuses, unless it was replaced meanwhile.
    mutating func invalidate(_ token: String) {
        if self.token == token { self.token = nil }
    }
}

/// The access token of one service account, fetched once for all waiting sends. Any thread.
final class FCMAccessToken: Sendable {
    typealias Completion = @Sendable (Result<String, AccessTokenFault>) -> Void
    /// Sends a request to the token endpoint.
    typealias Post = @Sendable (HTTPCall, @escaping HTTPCompletion) -> Void

    static let scope = "https://www.googleapis.com/auth/firebase.messaging"
    /// Google's limit for an assertion.
    static let assertionSeconds: Int64 = 3600
    /// Sends that may wait for one token. If exceeded, a send fails with a retryable fault.
    static let waitersMax = 10_000

    private struct State {
        var cache = AccessTokenCache()
        var waiters: [Completion] = []
        var requests = 0
    }

    private let account: ServiceAccount
    private let time: any TimeSource
    private let post: Post
    private let state = Guarded(State())

    init(account: ServiceAccount, time: any TimeSource, post: @escaping Post) {
        self.account = account
        self.time = time
        self.post = post
    }

    /// Token requests made so far.
    var requests: Int { state.withLock { $0.requests } }

    /// Passes a token to `completion`: at once if there is one, otherwise after the fetch, on the HTTP client's thread.
    func withToken(_ completion: @escaping Completion) {
        let decision: AccessTokenCache.Decision = state.withLock(at: time) { state, now in
            var decision = state.cache.decide(now: now)
            if case .wait(let fetch) = decision {
                if state.waiters.count < Self.waitersMax {
                    state.waiters.append(completion)
                } else if !fetch {
                    decision = .fail(
                        AccessTokenFault(isRetryable: true, after: nil, reason: "too many sends wait for an access token"))
                }
            }
            return decision
        }
        switch decision {
        case .use(let token, let fetch):
            if fetch { self.fetch() }
            completion(.success(token))
        case .wait(let fetch): if fetch { self.fetch() }
        case .fail(let fault): completion(.failure(fault))
        }
    }

    func invalidate(_ token: String) { state.withLock { $0.cache.invalidate(token) } }

    private func fetch() {
        state.withLock { $0.requests += 1 }
        do throws(CryptoError) {
            post(try Self.request(account, wallSeconds: time.wallSeconds)) { [self] result in
                ended(Self.read(result, now: time.wallMilliseconds))
            }
        } catch {
            ended(
                .failure(AccessTokenFault(isRetryable: false, after: nil, reason: "the assertion cannot be signed: \(error)")))
        }
    }

    private func ended(_ result: Result<(token: String, lifetime: UInt64), AccessTokenFault>) {
        let waiters = state.withLock(at: time) { state, now in
            switch result {
            case .success(let fresh): state.cache.arrived(fresh.token, lifetime: fresh.lifetime, now: now)
            case .failure(let fault): state.cache.failed(fault, now: now)
            }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter(result.map(\.token)) }
    }

    // MARK: The exchange (RFC 7523 as Google does it)

    static func request(_ account: ServiceAccount, wallSeconds: Int64) throws(CryptoError) -> HTTPCall {
        let assertion = try JSONWebToken.make(
            header: ["alg": "RS256", "typ": "JWT", "kid": .string(account.privateKeyID)],
            claims: [
                "iss": .string(account.clientEmail), "scope": .string(scope), "aud": .string(account.tokenURI),
                "iat": .int(wallSeconds), "exp": .int(wallSeconds + assertionSeconds),
            ]
        ) { bytes throws(CryptoError) in try account.privateKey.signature(for: bytes) }
        // The assertion is base64url and dots, so nothing needs escaping.
        let body = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=" + assertion
        return HTTPCall(
            method: "POST", url: account.tokenURI, headers: [("content-type", "application/x-www-form-urlencoded")],
            body: Array(body.utf8))
    }

    private static let retryableErrors: Set<String> = ["internal_failure", "server_error", "temporarily_unavailable"]

    /// - Parameter now: milliseconds since 1970, for `Retry-After`.
    static func read(
        _ result: Result<HTTPAnswer, HTTPClientError>, now: Int64
    ) -> Result<(token: String, lifetime: UInt64), AccessTokenFault> {
        let answer: HTTPAnswer
        switch result {
        case .failure(let error):
            return .failure(AccessTokenFault(isRetryable: true, after: nil, reason: "token endpoint: \(error)", isOutage: true))
        case .success(let received): answer = received
        }
        // A body that is not JSON comes from a proxy: the status decides.
        let document = try? JSONValue(parsing: answer.body)
        let after = RetryAfter.parse(answer.headers["retry-after"], now: now)
        if answer.status == 200 {
            let seconds = document?["expires_in"]?.intValue ?? 0
            if let token = document?["access_token"]?.stringValue, !token.isEmpty, seconds > 0 {
                return .success((token, UInt64(min(seconds, 86_400)) * nanosecondsPerSecond))
            }
            return .failure(AccessTokenFault(isRetryable: true, after: after, reason: "token endpoint: 200 without a token"))
        }
        let error = document?["error"]?.stringValue.map(PeerText.identifier)
        let isRetryable =
            answer.status == 408 || answer.status == 429 || answer.status >= 500 || error.map(retryableErrors.contains) == true
        return .failure(
            AccessTokenFault(
                isRetryable: isRetryable, after: after, reason: "token endpoint: \(error ?? "http \(answer.status)")",
                isOutage: isRetryable && answer.status != 429))
    }
}
