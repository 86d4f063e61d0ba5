"""WebSocket frames (RFC 6455, 5.2), as a client writes and reads them. Shares nothing with the hub.

By hand: the `websockets` package takes four to six times the CPU per frame, and cannot skip the frames that nobody measures.
"""

import struct

TEXT, CLOSE, PING, PONG = 0x1, 0x8, 0x9, 0xA


def client_frame(opcode, payload):
    """Masked, as a client has to; the mask is zero, which is legal and keeps the payload readable."""
    if len(payload) < 126:
        head = struct.pack("!BB", 0x80 | opcode, 0x80 | len(payload))
    else:
        head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, len(payload))
    return head + b"\0\0\0\0" + payload


def take_frames(buffer, without=()):
    """Cuts whole server frames off the front of a bytearray; returns (opcode, payload) pairs, but of those that begin with these bytes."""
    frames, position, end = [], 0, len(buffer)
    while end - position >= 2:
        length, start = buffer[position + 1], position + 2
        if length > 125:
            if length == 126:
                if end - position < 4:
                    break
                (length,), start = struct.unpack_from("!H", buffer, position + 2), position + 4
            elif length == 127:
                if end - position < 10:
                    break
                (length,), start = struct.unpack_from("!Q", buffer, position + 2), position + 10
            else:
                raise ValueError("a server frame is masked")
        if end < start + length:
            break
        if not buffer.startswith(without, start):
            frames.append((buffer[position] & 0x0F, bytes(buffer[start:start + length])))
        position = start + length
    del buffer[:position]
    return frames
