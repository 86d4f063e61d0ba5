internal import CLibCurl
internal import Glibc

/// Body of the client's thread: the multi handle, its easy handles and the window in front of them.
///
/// Only this thread uses the loop; other threads reach it via `CurlInbox`.
@safe final class CurlLoop {
    /// Silence after which the peer has probably closed the connection, so the next call opens a new one.
    private static let coldAfter = Duration.seconds(60)
    /// Minimum time between two renewals: Apple treats rapid connecting as abuse.
    private static let renewalSpacing = Duration.seconds(10)
    /// Longest sleep without calls; bounds the harm of a lost wake-up.
    private static let sleepMax = Duration.seconds(60)
    /// Longest sleep with calls inside. libcurl 7.88 can read a whole answer and forget to finish its transfer. The socket then stays
    /// silent, and only another `curl_multi_perform` finds the answer. With a stream limit of one, everything stopped until the time-outs.
    private static let busySleepMax = Duration.milliseconds(50)
    /// With at most this many answers at once, libcurl runs twice before the thread sleeps; see `busySleepMax`. With more answers,
    /// the next one soon causes a run anyway, and each run visits every call inside.
    private static let secondLookMax = 4
    /// With at least this many calls inside, answers are gathered for a moment before a run. Each run visits every call inside,
    /// so it should find many answers. Gateways answer after tens of milliseconds.
    private static let gatheringMin = 32
    /// Range of the moment's length in microseconds; it grows while runs find few answers.
    private static let gatheringRange: ClosedRange<UInt32> = 1_000...4_000
    /// A run finds enough if it ends one of this many calls inside.
    private static let gatheringShare = 4
    /// With at least this many calls inside, libcurl's writes are corked into full segments.
    private static let corkingMin = 8

    private let options: CurlOptions
    private let inbox: CurlInbox
    private var messages: [CurlInbox.Message] = []
    private var queue = CallQueue()
    /// Set once the end was requested.
    private var deadline: ContinuousClock.Instant?
    private let share: UnsafeMutableRawPointer
    /// Outlives the multi handle, whose connections it records.
    private let sockets: UnsafeMutablePointer<tandem_curl_sockets>
    private var multi: UnsafeMutableRawPointer
    private var transfers: [CurlTransfer] = []
    private var free: [Int] = []
    private var window: InFlightWindow
    private var inFlight = 0
    /// Calls ended by the last run that ended any.
    private var lastFound = 0
    /// Microseconds.
    private var gathering = gatheringRange.lowerBound
    private var timeoutsInRow = 0
    private var isDraining = false
    private var lastRenewal: ContinuousClock.Instant?
    private var idleSince: ContinuousClock.Instant?
    /// `sockets.opened` at the last look.
    private var socketsOpened: UInt = 0
    /// Stream limit that libcurl was given last.
    private var streamsMax: Int

    init(options: CurlOptions, inbox: CurlInbox) throws(HTTPClientError) {
        guard CurlGlobal.isReady else {
            throw Self.noMemory(
                "libcurl cannot be initialised, or was built without HTTP/2, TLS or asynchronous name resolution")
        }
        guard let share = unsafe curl_share_init() else { throw Self.noMemory("libcurl has no memory for a share") }
        unsafe tandem_curl_share_tls_sessions(share)
        guard let multi = unsafe Self.makeMulti(options) else {
            unsafe curl_share_cleanup(share)
            throw Self.noMemory("libcurl has no memory for a multi handle")
        }
        unsafe sockets = .allocate(capacity: 1)
        unsafe sockets.initialize(to: tandem_curl_sockets())
        unsafe sockets.pointee.user_timeout_milliseconds = UInt32(clamping: options.tcpUserTimeout.wholeMilliseconds)
        unsafe self.share = share
        unsafe self.multi = multi
        self.options = options
        self.inbox = inbox
        streamsMax = Self.streamsMax(options)
        window = InFlightWindow(
            primes: options.primesConnections, limitMax: options.inFlightMax, narrows: options.narrowsWhenThrottled)
        unsafe inbox.attach(multi)
        let limit = window.limit
        inbox.count { $0.window = limit }
    }

    deinit { unsafe sockets.deallocate() }

    private static func noMemory(_ detail: String) -> HTTPClientError {
        HTTPClientError(reason: .transport(.failedInit), delivery: .notSent, detail: detail)
    }

    /// The default of 100 would limit streams even if the peer allows more.
    private static func streamsMax(_ options: CurlOptions) -> Int { max(100, options.inFlightMax) }

    private static func makeMulti(_ options: CurlOptions) -> UnsafeMutableRawPointer? {
        guard let multi = unsafe curl_multi_init() else { return nil }
        unsafe tandem_curl_multi_set_long(multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX)
        unsafe tandem_curl_multi_set_long(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, streamsMax(options))
        unsafe tandem_curl_multi_set_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, options.connectionsPerHostMax)
        unsafe tandem_curl_multi_set_long(
            multi, CURLMOPT_MAXCONNECTS, max(options.connectionsCachedMax, options.connectionsPerHostMax))
        return unsafe multi
    }

    /// Runs until the inbox requests the end. Every call is completed and every handle freed then.
    func run() {
        while true {
            let now = ContinuousClock.now
            readInbox(now: now)
            if let deadline, now >= deadline || inFlight == 0 && queue.count == 0 { break }
            while let first = queue.first, first.until <= now, let call = queue.popFirst() { refuse(call, .waitedTooLong) }
            // The wake-up for new calls may have gone to the old handle, so look again before sleeping.
            if renewIfDrained(now: now) { continue }
            startWaiting(now: now)
            let inside = inFlight
            var found = perform()
            // The second run is for answers that libcurl has read and forgotten.
            if found == 0, inFlight > 0, lastFound <= Self.secondLookMax { found = perform() }
            if found == 0 {
                sleep()
            } else if inside >= Self.gatheringMin {
                // A finished call has made room, which is filled before the next run. The next run also finds data that libcurl has read
                // for calls this run had already passed.
                adaptGathering(found: found, inside: inside)
            }
        }
        close()
    }

    private func readInbox(now: ContinuousClock.Instant) {
        inbox.take(into: &messages)
        for message in messages {
            switch message {
            case .call(let call): queue.append(call)
            case .renew: askForRenewal(now: now)
            case .end(let deadline): self.deadline = self.deadline ?? deadline
            }
        }
        messages.removeAll(keepingCapacity: true)
    }

    private func sleep() {
        var wake = ContinuousClock.now + (inFlight > 0 ? Self.busySleepMax : Self.sleepMax)
        if let deadline { wake = min(wake, deadline) }
        if let expiry = queue.first?.until { wake = min(wake, expiry) }
        let milliseconds = max(0, ContinuousClock.now.duration(to: wake).wholeMilliseconds)
        unsafe curl_multi_poll(multi, nil, 0, Int32(clamping: milliseconds), nil)
        if inFlight >= Self.gatheringMin { _ = usleep(gathering) }
    }

    private func adaptGathering(found: Int, inside: Int) {
        if found * Self.gatheringShare < inside {
            gathering = min(Self.gatheringRange.upperBound, gathering * 2)
        } else if found * 2 > inside {
            gathering = max(Self.gatheringRange.lowerBound, gathering / 2)
        }
    }

    // MARK: Starting

    private func startWaiting(now: ContinuousClock.Instant) {
        guard !isDraining else { return }
        if inFlight == 0, let idleSince, idleSince.duration(to: now) > Self.coldAfter { window.connectionGone() }
        while inFlight < window.limit, let call = queue.popFirst() { start(call) }
    }

    private func start(_ waiting: CurlInbox.Waiting) {
        guard let slot = freeSlot() else {
            return refuse(waiting, Self.noMemory("libcurl has no memory for another transfer"))
        }
        let transfer = transfers[slot]
        do throws(HTTPClientError) {
            unsafe try transfer.prepare(waiting.call, options: options, share: share, sockets: sockets, completion: waiting.completion)
        } catch {
            free.append(slot)
            return refuse(waiting, error)
        }
        guard unsafe curl_multi_add_handle(multi, transfer.easy) == CURLM_OK else {
            free.append(slot)
            _ = transfer.finish(.failedInit)
            return refuse(waiting, Self.noMemory("libcurl refused to start the transfer"))
        }
        inFlight += 1
        idleSince = nil
        let inFlight = inFlight
        inbox.count { counters in
            counters.queued -= 1
            counters.inFlight = inFlight
            counters.inFlightPeak = max(counters.inFlightPeak, inFlight)
        }
    }

    /// Ends a waiting call that never entered libcurl.
    private func refuse(_ waiting: CurlInbox.Waiting, _ error: HTTPClientError) {
        inbox.count { $0.queued -= 1 }
        waiting.completion(.failure(error))
    }

    private func freeSlot() -> Int? {
        if let slot = free.popLast() {
            assert(transfers[slot].completion == nil, "transfer \(slot) is free and has a call")
            return slot
        }
        guard let transfer = CurlTransfer(slot: transfers.count) else { return nil }
        transfers.append(transfer)
        return transfers.count - 1
    }

    // MARK: Working and ending

    /// Runs libcurl once and completes the ended calls.
    /// - Returns: the number of ended calls.
    private func perform() -> Int {
        var running: Int32 = 0
        let isCorked = inFlight >= Self.corkingMin
        if isCorked { unsafe tandem_curl_cork(sockets, 1) }
        let code = unsafe curl_multi_perform(multi, &running)
        if isCorked { unsafe tandem_curl_cork(sockets, 0) }
        guard code == CURLM_OK else {
            // A failed multi handle loses all its transfers.
            let lost = inFlight
            for slot in transfers.indices where transfers[slot].completion != nil { end(slot, .receiveError) }
            askForRenewal(now: ContinuousClock.now)
            return lost
        }
        var finished = 0
        var result = CURLE_OK
        while let easy = unsafe tandem_curl_multi_next_done(multi, &result) {
            var tag: UnsafeMutableRawPointer?
            unsafe tandem_curl_get_pointer(easy, CURLINFO_PRIVATE, &tag)
            // Slots are stored plus one, because slot 0 would be a null pointer.
            let slot = Int(bitPattern: tag) - 1
            precondition(transfers.indices.contains(slot), "libcurl returned a transfer of slot \(slot), which does not exist")
            end(slot, CurlCode(rawValue: Int32(bitPattern: result.rawValue)))
            finished += 1
        }
        assert(inFlight >= Int(running), "\(running) calls are inside libcurl, and \(inFlight) were given to it")
        if finished > 0 { lastFound = finished }
        keepCold()
        return finished
    }

    /// Primes every new connection, whichever side closed the old one. For calls admitted to the old connection libcurl opens a new one,
    /// and would send all of them before it has read the peer's settings. So a new connection gets a stream limit of one while the window
    /// is cold. The limit arrives in time, because a handshake lies between opening and first use.
    private func keepCold() {
        guard window.primes else { return }
        let opened = unsafe sockets.pointee.opened
        if opened != socketsOpened {
            socketsOpened = opened
            window.connectionGone()
        }
        let streams = window.isCold ? 1 : Self.streamsMax(options)
        guard streams != streamsMax else { return }
        streamsMax = streams
        unsafe tandem_curl_multi_set_long(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, streams)
    }

    private func end(_ slot: Int, _ code: CurlCode) {
        let transfer = transfers[slot]
        // Otherwise two calls would get the transfer next, and one would get the other's answer.
        precondition(transfer.completion != nil, "transfer \(slot) has ended already")
        unsafe curl_multi_remove_handle(multi, transfer.easy)
        let ended = transfer.finish(code)
        free.append(slot)
        inFlight -= 1
        assert(inFlight >= 0, "a transfer ended twice")
        if inFlight == 0 { idleSince = ContinuousClock.now }
        note(ended.result, code, sends: transfer.sends, connectionsOpened: transfer.connectionsOpened)
        ended.completion?(ended.result)
    }

    private func note(_ result: Result<HTTPAnswer, HTTPClientError>, _ code: CurlCode, sends: Int, connectionsOpened: Int) {
        switch result {
        case .success(let answer):
            timeoutsInRow = 0
            window.bound(limitMax: answer.version == .http1 ? options.inFlightMaxHTTP1 : options.inFlightMax)
            window.ended(InFlightWindow.signal(status: answer.status, is429OfOne: options.is429OfOneRecipient), inside: inFlight)
        // A withdrawn call says nothing about the peer.
        case .failure(let error) where error.reason == .withdrawn: window.ended(.answered, inside: inFlight)
        case .failure:
            window.ended(.failed, inside: inFlight)
            timeoutsInRow = code == .operationTimedOut ? timeoutsInRow + 1 : 0
            if timeoutsInRow >= options.timeoutsBeforeRenewal { askForRenewal(now: ContinuousClock.now) }
        }
        let (inFlight, limit) = (inFlight, window.limit)
        inbox.count { counters in
            counters.inFlight = inFlight
            counters.window = limit
            counters.connectionsOpened += connectionsOpened
            if sends > 1 { counters.repeatedByLibcurl += 1 }
            switch result {
            case .success(let answer):
                counters.answered += 1
                if answer.version < .http2 { counters.answeredOverHTTP1 += 1 }
            case .failure: counters.failed += 1
            }
        }
    }

    // MARK: New connections

    private func askForRenewal(now: ContinuousClock.Instant) {
        if let lastRenewal, lastRenewal.duration(to: now) < Self.renewalSpacing { return }
        isDraining = true
    }

    /// Closes all connections once no call uses them. Only a new multi handle does so reliably, black holes included.
    /// TLS sessions are in the share and survive.
    /// - Returns: whether it did.
    private func renewIfDrained(now: ContinuousClock.Instant) -> Bool {
        guard isDraining, inFlight == 0 else { return false }
        isDraining = false
        timeoutsInRow = 0
        lastRenewal = now
        window.connectionGone()
        guard let fresh = unsafe Self.makeMulti(options) else { return false }
        streamsMax = Self.streamsMax(options)
        let old = unsafe multi
        unsafe multi = fresh
        unsafe inbox.attach(fresh)
        unsafe curl_multi_cleanup(old)
        inbox.count { $0.renewals += 1 }
        return true
    }

    // MARK: The end

    private func close() {
        inbox.seal()
        readInbox(now: ContinuousClock.now)
        var outstanding: [HTTPCompletion] = []
        for transfer in transfers where transfer.completion != nil {
            unsafe curl_multi_remove_handle(multi, transfer.easy)
            if let completion = transfer.finish(.ok).completion { outstanding.append(completion) }
        }
        assert(outstanding.count == inFlight, "\(inFlight) calls are inside, and \(outstanding.count) are told of the end")
        // Order: easy handles, then the multi handle, then their share.
        transfers = []
        unsafe curl_multi_cleanup(multi)
        unsafe curl_share_cleanup(share)
        inFlight = 0
        inbox.count { $0.inFlight = 0 }
        for completion in outstanding { completion(.failure(.shutDown(.outcomeUnknown))) }
        while let call = queue.popFirst() { refuse(call, .shutDown(.notSent)) }
    }
}

/// libcurl's process-wide state, initialised once before the first thread uses it.
enum CurlGlobal {
    /// False if libcurl failed to start, or lacks HTTP/2, TLS or an asynchronous resolver.
    static let isReady = tandem_curl_global_init() == CURLE_OK && tandem_curl_has_what_we_need() != 0
}
