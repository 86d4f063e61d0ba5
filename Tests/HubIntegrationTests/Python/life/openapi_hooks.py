"""What schemathesis needs to know to talk to a hub: how requests are signed, and what exists there."""

import atexit
import collections
import hashlib
import hmac
import itertools
import json
import os
import re
import time
import urllib.parse

import requests
import schemathesis
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.openapi.checks import RejectedPositiveData

APP = ("app-key", "app-secret")
# As in DocumentTests.swift.
OPERATOR = ("operator", "operator-secret-0123")
PARTICIPANT_TOKEN = os.environ["PARTICIPANT_TOKEN"]
# Of somebody else: the changes of a device before it use up the limit of the first one.
DELETING_TOKEN = os.environ["DELETING_TOKEN"]


class Signature(requests.auth.AuthBase):
    """Signs the request as it goes out, as Pusher's libraries do."""

    def __init__(self, key, secret):
        self.key, self.secret = key, secret

    def __call__(self, request):
        url = urllib.parse.urlsplit(request.url)
        body = request.body.encode() if isinstance(request.body, str) else request.body or b""
        query = urllib.parse.parse_qsl(url.query, keep_blank_values=True)
        query += [("auth_key", self.key), ("auth_timestamp", str(int(time.time()))), ("auth_version", "1.0")]
        if body:
            query.append(("body_md5", hashlib.md5(body).hexdigest()))
        signed = "&".join(f"{name}={value}" for name, value in sorted(((n.lower(), v) for n, v in query), key=lambda pair: pair[0]))
        text = f"{request.method}\n{urllib.parse.unquote(url.path)}\n{signed}"
        query.append(("auth_signature", hmac.new(self.secret.encode(), text.encode(), hashlib.sha256).hexdigest()))
        request.url = urllib.parse.urlunsplit(url._replace(query=urllib.parse.urlencode(query)))
        return request


class ParticipantToken(requests.auth.AuthBase):
    def __call__(self, request):
        token = DELETING_TOKEN if request.method == "DELETE" else PARTICIPANT_TOKEN
        request.headers["Authorization"] = f"Bearer {token}"
        return request


class LinkToken(requests.auth.AuthBase):
    def __call__(self, request):
        request.headers["Authorization"] = f"Bearer {os.environ['LINK_TOKEN']}"
        return request


schemathesis.auth.set_from_requests(Signature(*APP)).apply_to(path_regex=r"^(/apps/|/users/)")
schemathesis.auth.set_from_requests(Signature(*OPERATOR)).apply_to(path_regex=r"^/operator/")
schemathesis.auth.set_from_requests(ParticipantToken()).apply_to(path_regex=r"^/(pusher|me)/")
schemathesis.auth.set_from_requests(LinkToken()).apply_to(path_regex=r"^/links/")

# Well-formed names of nothing would only ever show the 404, so half of them become the names of what openapi.py has created.
# No example has these names, so nothing but that creates or ends them.
KNOWN = {"session": "wednesday", "join_code": "KNOWN1", "event": os.environ["EVENT"]}
SCHEDULED = os.environ["SCHEDULED"].split()
APPS = os.environ["APPS"].split()
NUMBERS = itertools.count(1)


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is None or case.meta.generation.mode.is_negative:
        # What is wrong with it shall stay so.
        return
    parameters = case.path_parameters or {}
    key = (case.headers or {}).get("Idempotency-Key", "")
    if 0 < len(key) < 200:
        # One key for different requests would only ever show the 422.
        case.headers["Idempotency-Key"] = key + str(next(NUMBERS))
    if case.operation.path.endswith("/sessions/{session}") and case.method in ("PUT", "DELETE"):
        return
    for name, known in KNOWN.items():
        if len(parameters.get(name, "")) % 2:
            parameters[name] = known
    if case.operation.path.endswith("/participants/{user}/token") and len(parameters["user"]) % 2:
        parameters |= {"session": KNOWN["session"], "user": os.environ["PARTICIPANT"]}
    if len(parameters.get("scheduled", "")) % 2:
        # Each can be cancelled once; the last one stays to be looked at.
        parameters["scheduled"] = SCHEDULED.pop() if case.method == "DELETE" and len(SCHEDULED) > 1 else SCHEDULED[0]
    if len(parameters.get("stored", "")) % 2:
        # Each can be removed once; the last one stays to be changed.
        parameters["stored"] = APPS.pop() if case.method == "DELETE" and len(APPS) > 1 else APPS[0]
    if case.operation.path.endswith("/links") and len(case.body.get("event") or "") % 2:
        case.body |= {"event": KNOWN["event"]}
    if case.operation.path == "/me/receipts" and len(case.body.get("event_id") or "") % 2 and not case.body.get("nid"):
        case.body |= {"event_id": KNOWN["event"]}
    if case.operation.path == "/me/state" and case.method == "POST" and len(case.body["token"]) % 2:
        case.body["token"] = PARTICIPANT_TOKEN
    if case.operation.path == "/games/join" and len(case.body["join_code"]) % 2:
        case.body["join_code"] = KNOWN["join_code"]
    if case.operation.path == "/pusher/auth" and len(case.body["channel_name"]) % 2:
        case.body["channel_name"] = f"presence-quiz-{KNOWN['session']}"


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Narrows what only this hub's definitions decide."""
    schemas = raw_schema["components"]["schemas"]
    schemas["SessionBody"]["properties"]["definition"]["enum"] = ["quiz"]
    schemas["ParticipantBody"]["properties"]["role"] = {"type": "null"}
    for block in ("android", "apns", "webpush", "fcm_options", "android_v2", "live_activity"):
        # The gateways' own schemas.
        schemas["NotificationBody"]["properties"][block] = {"type": "null"}


# Refusals of requests that fit their schemas: what these rules compare lies in two places of the request, or in the store.
BEYOND_SCHEMAS = (
    "info=user_count needs a filter_by_prefix that begins with presence-",
    "Cannot retrieve the user count unless the channel is a presence channel",
    "Cannot retrieve the cache unless the channel is a cache channel",
    "provider apns goes with platform ios only",
    "a fid goes with provider fcm only",
    "token and fid are both there",
    "timezone is not a time zone",
    # What a direct send needs beside what each of its members may be.
    "there is nothing to send",
    "policy sync shows nothing",
    "once is about users",
    "data: cannot have",
    "kind: ",
    "to.condition is no expression",
    "send either nids, or reason or before or both",
    "before is not a time",
    "platform is missing",
    # Whether an e-mail is needed is the definition's matter, and how often an address may register the clock's.
    "email is missing",
    "X-Client-Id is missing or no secret",
    "the session is full",
    "this e-mail belongs to somebody whom the backend invited",
    "too many devices registered from this address",
    "this idempotency key was used for a different request",
    "an APNs device token is an even number of hexadecimal digits",
    # A number from 2^53 on.
    "socket_id is not valid",
    "the body is not valid JSON: bad number, or one beyond 64 bits",
    # The clock has a word in it, too.
    "deliver_at ",
    "some events of the batch have a deliver_at",
    "info tells what a channel is like now",
    "dry_run says what an event would come to now",
    "dry_run does not go with info",
    "dry_run takes at most",
    # What the apps of the configuration file have room for.
    "event_data_bytes_max is at most",
    # How many apps there are.
    "app_key is missing: this hub serves several apps",
)
# What is not looked at in the body beside a header that says the same.
HEADER_FIRST = {"X-Client-Id": "device_id", "Idempotency-Key": "idempotency_key"}


@schemathesis.hook
def filter_failure(context, failure, case, response):
    # Who asks too often gets no other answer, whatever else is wrong or right.
    if response.status_code == 429 and isinstance(failure, (RejectedPositiveData, AcceptedNegativeData)):
        return False
    if isinstance(failure, RejectedPositiveData):
        return not re.sub(r"^batch\[\d+\]\.", "", response.json()["error"]).startswith(BEYOND_SCHEMAS)
    if isinstance(failure, AcceptedNegativeData):
        return not any(member in failure.message and case.headers.get(header) for header, member in HEADER_FIRST.items())
    return True


# Which statuses each operation was seen to answer: a run in which one of them never succeeds has not tested it.
STATUSES = collections.defaultdict(collections.Counter)


@schemathesis.hook
def after_call(context, case, response):
    STATUSES[case.operation.label][response.status_code] += 1


@atexit.register
def save_statuses():
    with open(os.environ["STATUSES"], "w") as file:
        json.dump(STATUSES, file)
