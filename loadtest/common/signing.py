"""A backend's signature, as the pusher-http libraries make it."""

import hashlib
import hmac
import time


def signed(method, path, body, key, secret):
    """The path with its signed query."""
    query = f"auth_key={key}&auth_timestamp={int(time.time())}&auth_version=1.0"
    if body:
        query += f"&body_md5={hashlib.md5(body).hexdigest()}"
    signature = hmac.new(secret.encode(), f"{method}\n{path}\n{query}".encode(), hashlib.sha256).hexdigest()
    return f"{path}?{query}&auth_signature={signature}"
