"""Whom requests and connections count for, behind proxies and without; the configurations are in AddressTests.swift."""

import socket as sockets
import sys

from tandem_client import *

ADA, BEN = "203.0.113.1", "2001:db8::2"
WRONG = {"name": "A", "email": "a@example.com", "join_code": "WRONG1"}


def join_from(address, code="WRONG1"):
    return http.post(f"{HUB_URL}/games/join", json={**WRONG, "join_code": code}, headers={"X-Forwarded-For": f"10.9.9.9, {address}"}, timeout=PATIENCE)


def socket_from(address):
    """A WebSocket of the address, and the first event it is told."""
    url = f"{HUB_URL.replace('http', 'ws', 1)}/app/{KEY}?protocol=7"
    client = connect(url, ssl=tls_context(), additional_headers={"X-Forwarded-For": address}, proxy=None, legacy=True)
    return client, json.loads(client.recv(timeout=PATIENCE))


def health_from(address):
    return http.get(f"{HUB_URL}/health", headers={"X-Forwarded-For": address}, timeout=PATIENCE).status_code


def forwarded():
    create_session("monday", "ABC123")
    results = {"wrong": [join_from(ADA).status_code for _ in range(10)]}
    before = time.monotonic()
    results["ben"] = join_from(BEN, "ABC123").status_code
    between = time.monotonic()
    results["ada"] = join_from(ADA, "ABC123").status_code
    results["ada_waits"] = time.monotonic() - between > 0.5
    check(between - before < PATIENCE)

    first, second = socket_from(ADA), socket_from(ADA)
    results["sockets"] = [first[1]["event"], second[1]["event"], socket_from(ADA)[1]["data"]["code"], socket_from(BEN)[1]["event"]]
    results["http"] = [health_from(ADA), health_from(BEN)]
    first[0].close()
    wait_for(lambda: health_from(ADA) == 200, "a free place for an HTTP connection")
    finish(**results)


def untrusted():
    create_session("monday", "ABC123")
    wrong = [join_from(f"203.0.113.{number}").status_code for number in range(10)]
    before = time.monotonic()
    right = join_from("203.0.113.99", "ABC123").status_code
    results = {"wrong": wrong, "right": right, "waits": time.monotonic() - before > 0.5}
    with open(os.environ["HUB_LOG"]) as log:
        results["warnings"] = sum("X-Forwarded-For" in line for line in log)
    finish(**results)


def line(address):
    return f"PROXY TCP{6 if ':' in address else 4} {address} {address} 4711 443\r\n".encode()


def block(address):
    four = sockets.inet_pton(sockets.AF_INET, address)
    return b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + four + four + b"\x12\x67\x01\xbb"


def ask(header):
    """The status of a join with a wrong code over a connection that begins with the header; None: it was closed."""
    connection = sockets.create_connection(("127.0.0.1", HUB_PORT), timeout=PATIENCE)
    body = json.dumps(WRONG).encode()
    try:
        connection.sendall(header)
        context = tls_context()
        connection = context.wrap_socket(connection, server_hostname="127.0.0.1") if context else connection
        connection.sendall(f"POST /games/join HTTP/1.1\r\nHost: hub\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = connection.recv(4096)
    except OSError:
        return None
    finally:
        connection.close()
    return int(answer.split()[1]) if answer else None


def proxied():
    finish(
        ada=[ask(line(ADA)), ask(block(ADA)), ask(line(ADA))],
        ben=[ask(line(BEN)) for _ in range(3)],
        others=[ask(line("203.0.113.3")), ask(b"PROXY UNKNOWN\r\n")],
        without=[ask(b""), ask(b"PROXY TCP4 nobody\r\n")])


{f.__name__: f for f in (forwarded, untrusted, proxied)}[sys.argv[1]]()
