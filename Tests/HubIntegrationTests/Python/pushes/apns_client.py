"""Sends to simulated APNs with aioapns, a client that others wrote, and prints each result as one line of JSON."""

import asyncio
import json
import os
import ssl
from urllib.parse import urlsplit

from aioapns import APNs, NotificationRequest, PushType
from aioapns.connection import APNsProductionClientProtocol

TOKEN = "ab" * 32
ALERT = {"aps": {"alert": {"title": "T", "body": "B"}, "sound": {"critical": 1, "name": "s", "volume": 0.5}, "badge": 0}, "id": 7}
ACTIVITY = {"aps": {"event": "update", "timestamp": 5, "content-state": {"score": 3}}}


def push(message, kind=PushType.ALERT, **rest):
    return NotificationRequest(TOKEN, message, push_type=kind, **rest)


REQUESTS = {
    "alert": push(ALERT, collapse_key="g", time_to_live=600),
    "background": push({"aps": {"content-available": 1}}, PushType.BACKGROUND, priority=5),
    "activity": push(ACTIVITY, PushType.LIVEACTIVITY, apns_topic="com.example.app.push-type.liveactivity"),
    "voip": push(ALERT, PushType.VOIP, apns_topic="com.example.app.voip"),
    "urgent background": push({"aps": {"content-available": 1}}, PushType.BACKGROUND),
    "silent alert": push({"aps": {"content-available": 1}}),
    "activity under the app's topic": push(ACTIVITY, PushType.LIVEACTIVITY),
    "a badge in words": push({"aps": {"alert": "x", "badge": "1"}}),
    "arguments without a key": push({"aps": {"alert": {"body": "x", "loc-args": ["1"]}}}),
    "too large": push({"aps": {"alert": "x" * 4096}}),
}


async def main():
    address = urlsplit(os.environ["TANDEM_APNS_URL"])
    APNsProductionClientProtocol.APNS_SERVER = address.hostname
    APNsProductionClientProtocol.APNS_PORT = address.port
    with open(os.environ["APNS_KEY_PATH"]) as file:
        key = file.read()
    context = ssl.create_default_context(cafile=os.environ["TANDEM_PUSH_CA_FILE"])
    # The simulator tells HTTP/2 from HTTP/1.1 by ALPN, which aioapns leaves to its context.
    context.set_alpn_protocols(["h2"])
    client = APNs(
        key=key, key_id=os.environ["APNS_KEY_ID"], team_id=os.environ["APNS_TEAM_ID"], topic=os.environ["APNS_TOPIC"],
        max_connections=1, ssl_context=context)
    results = {}
    for name, request in REQUESTS.items():
        result = await client.send_notification(request)
        results[name] = [result.status, result.description]
    print(json.dumps(results))


asyncio.run(main())
