import CNGHTTP2

/// nghttp2's C callbacks: each finds its session via the user data and calls one typed method.
enum HTTP2Callbacks {
    static var bodyProvider: nghttp2_data_provider {
        unsafe nghttp2_data_provider(
            source: nghttp2_data_source(ptr: nil),
            read_callback: { _, stream, target, count, flags, _, context in
                guard let session = unsafe HTTP2Callbacks.session(context) else {
                    return Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue)
                }
                let part = unsafe session.readBody(
                    stream: stream, into: UnsafeMutableBufferPointer(start: target, count: count))
                if part.isLast { unsafe flags?.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
                return part.count
            })
    }

    static func register(in callbacks: OpaquePointer?) {
        unsafe nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, context in
            guard let frame = unsafe frame?.pointee, unsafe frame.headers.cat == NGHTTP2_HCAT_REQUEST else { return 0 }
            unsafe HTTP2Callbacks.session(context)?.beganHeaders(stream: frame.hd.stream_id)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, frame, name, nameBytes, value, valueBytes, _, context in
            guard let stream = unsafe frame?.pointee.hd.stream_id else { return 0 }
            unsafe HTTP2Callbacks.session(context)?.receivedHeader(
                stream: stream, name: UnsafeBufferPointer(start: name, count: nameBytes),
                value: UnsafeBufferPointer(start: value, count: valueBytes))
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) { _, _, stream, data, count, context in
            unsafe HTTP2Callbacks.session(context)?.receivedBody(
                stream: stream, bytes: UnsafeBufferPointer(start: data, count: count))
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, context in
            guard let header = unsafe frame?.pointee.hd else { return 0 }
            if UInt32(header.type) == NGHTTP2_RST_STREAM.rawValue {
                unsafe HTTP2Callbacks.session(context)?.traffic.count { $0.resetsReceived += 1 }
            }
            if UInt32(header.type) == NGHTTP2_SETTINGS.rawValue, UInt32(header.flags) & NGHTTP2_FLAG_ACK.rawValue != 0 {
                unsafe HTTP2Callbacks.session(context)?.confirmedSettings()
            }
            let carriesRequest =
                UInt32(header.type) == NGHTTP2_HEADERS.rawValue || UInt32(header.type) == NGHTTP2_DATA.rawValue
            if carriesRequest && UInt32(header.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0 {
                unsafe HTTP2Callbacks.session(context)?.endedRequest(stream: header.stream_id)
            }
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks) { _, frame, code, context in
            // Streams beyond the limit are refused; once the peer has acknowledged the limit, they are a connection error.
            let isStream = unsafe frame?.pointee.hd.type == UInt8(NGHTTP2_HEADERS.rawValue)
            if isStream, code == NGHTTP2_ERR_REFUSED_STREAM.rawValue || code == NGHTTP2_ERR_PROTO.rawValue {
                unsafe HTTP2Callbacks.session(context)?.traffic.count { $0.streamsBeyondLimit += 1 }
            }
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_frame_send_callback(callbacks) { _, frame, context in
            guard let header = unsafe frame?.pointee.hd, let session = unsafe HTTP2Callbacks.session(context) else { return 0 }
            if UInt32(header.type) == NGHTTP2_GOAWAY.rawValue { session.traffic.count { $0.goAwaysSent += 1 } }
            if UInt32(header.type) == NGHTTP2_SETTINGS.rawValue, UInt32(header.flags) & NGHTTP2_FLAG_ACK.rawValue == 0 {
                session.sentSettings()
            }
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, _, context in
            unsafe HTTP2Callbacks.session(context)?.closedStream(stream)
            return 0
        }
    }

    /// Borrowed: the session owns the handle that calls back, and outlives every call.
    private static func session(_ context: UnsafeMutableRawPointer?) -> HTTP2Session? {
        unsafe context.map { unsafe Unmanaged<HTTP2Session>.fromOpaque($0).takeUnretainedValue() }
    }
}
