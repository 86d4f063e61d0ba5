"""WebSockets by hand, for what no library sends."""

import base64
import re
import socket as sockets

from tandem_client import HUB_PORT, KEY, PATIENCE, check, tls_context


def tcp(receive_buffer_bytes=None):
    """A connection to the hub, through TLS where it speaks that."""
    connection = sockets.socket()
    if receive_buffer_bytes:
        connection.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, receive_buffer_bytes)
    connection.settimeout(PATIENCE)
    connection.connect(("127.0.0.1", HUB_PORT))
    context = tls_context()
    return context.wrap_socket(connection, server_hostname="127.0.0.1") if context else connection


UPGRADE = (f"GET /app/{KEY}?protocol=7 HTTP/1.1\r\nHost: hub\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
           f"Sec-WebSocket-Key: {base64.b64encode(b'0123456789abcdef').decode()}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode()


def raw_upgrade():
    """An open WebSocket whose handshake has been read."""
    return raw_session()[0]


def raw_session(receive_buffer_bytes=None):
    """The same with its socket id."""
    connection = tcp(receive_buffer_bytes)
    connection.sendall(UPGRADE)
    answer = b""
    while b"connection_established" not in answer:
        part = connection.recv(4096)
        check(part, answer)
        answer += part
    return connection, re.search(rb'(\d+\.\d+)\\"', answer)[1].decode()


def client_frame(payload, opcode=1):
    mask = b"\x01\x02\x03\x04"
    header = bytes([0x80 | opcode, 0x80 | len(payload)]) if len(payload) < 126 else bytes([0x80 | opcode, 0xFE]) + len(payload).to_bytes(2, "big")
    return header + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
