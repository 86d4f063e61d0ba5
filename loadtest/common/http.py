"""A backend's signatures, as the pusher-http libraries make them, and HTTP answers."""

import hashlib
import hmac
import time


def signed(method, path, body, key, secret, **further):
    """The path with its signed query; `further` parameters have names behind `body_md5`."""
    query = f"auth_key={key}&auth_timestamp={int(time.time())}&auth_version=1.0"
    if body:
        query += f"&body_md5={hashlib.md5(body).hexdigest()}"
    query += "".join(f"&{name}={value}" for name, value in sorted(further.items()))
    signature = hmac.new(secret.encode(), f"{method}\n{path}\n{query}".encode(), hashlib.sha256).hexdigest()
    return f"{path}?{query}&auth_signature={signature}"


def take_answer(buffer):
    """Cuts one whole HTTP answer off the front of a bytearray: (status, body), or None while it is not complete."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = bytes(buffer[:end]).decode("latin-1").split("\r\n")
    length = next((int(line.split(":", 1)[1]) for line in head if line.lower().startswith("content-length:")), 0)
    if len(buffer) < end + 4 + length:
        return None
    body = bytes(buffer[end + 4:end + 4 + length])
    del buffer[:end + 4 + length]
    return int(head[0].split()[1]), body
