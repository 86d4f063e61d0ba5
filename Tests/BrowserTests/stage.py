"""What the tests of the console on a real hub share: its passwords and cookies, signed requests, and pages with a session of their own."""

import base64
import hashlib
import hmac
import json
import os
import time
import urllib.parse

import programs as surface
import wire
from common import http
from page import Page

OPERATOR, VIEWER = "open-for-operators", "open-for-viewers"
CHANNEL = "presence-stage-console"
HOSTILE = "<img src=x onerror=window.hacked=1>"
HOSTILE_NAME = "\"><script>window.hacked=1</script> \u202egnp.exe"
FORMULA = "=HYPERLINK(\"evil\")"
# Somebody without a device.
DORA = "=dora()"


def base64url(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def password_hash(password):
    """As `tandem console password` prints it."""
    salt = hashlib.sha256(password.encode()).digest()[:16]
    digest = hashlib.scrypt(password.encode(), salt=salt, n=1 << 15, r=8, p=3, maxmem=1 << 26, dklen=32)
    return f"scrypt.15.8.3.{base64url(salt)}.{base64url(digest)}"


HASHES = {"operator": password_hash(OPERATOR), "viewer": password_hash(VIEWER)}
# Pages of any origin may read what the hub answers.
CONFIGURATION = surface.CONFIGURATION + 'cors: { origins: ["*"] }\n' + f"console: {{ operator_password_hash: {HASHES['operator']}, viewer_password_hash: {HASHES['viewer']} }}\n"


class Hub(surface.Hub):
    """A hub with a console; `shared` are settings besides those of the gateways."""

    shared = {}

    def start(self):
        configuration = CONFIGURATION.replace("PORT", str(self.port)).replace("LOOPS", str(self.loops))
        self.launch(configuration, {**self.gateways.settings, **self.shared})


def cookie(role, seconds=3600):
    """Name and value of a session's cookie, which the hub's passwords sign."""
    key = hashlib.sha256("\n".join(["tandem console", HASHES["operator"], HASHES["viewer"], ""]).encode()).digest()
    text = f"{role}.{int(time.time()) + seconds}.{base64url(os.urandom(12))}"
    code, name = (hmac.new(key, data, hashlib.sha256).hexdigest() for data in (text.encode(), b"cookie"))
    return f"tandem_console_{name[:8]}", f"{text}.{code}"


def call(world, method, path, body=None, **query):
    """A backend's request below the app; the path is not encoded yet."""
    whole = f"/apps/{wire.APP}{path}"
    data = json.dumps(body).encode() if body is not None else b""
    target = urllib.parse.quote(whole) + http.signed(method, whole, data, wire.KEY, wire.SECRET, **query)[len(whole):]
    status, answer = world.caller.call(wire.request(method, target, data, [("Content-Type", "application/json")]))
    assert status in (200, 201), (method, path, status, answer)
    return answer


def publish(world, **more):
    """One event with a policy; its id."""
    world.number += 1
    return call(world, "POST", "/events", {"name": "news", "channel": CHANNEL, "data": json.dumps({"n": world.number}), **more})["event_id"]


def eventually(holds, seconds=30):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def fail_once(world, token):
    """The next push to the token is refused for good."""
    fault = json.dumps({"status": 400, "reason": "INVALID_ARGUMENT", "message": "Invalid value", "times": 1}).encode()
    world.control("PUT", f"/faults/{urllib.parse.quote(token, safe='')}", fault)


def operator(world, *where, role="operator", seconds=3600, **size):
    """A page with a session of its own, in a window of its own, at a screen."""
    page = Page(world.browser, context=world.browser.say("Target.createBrowserContext")["browserContextId"], **size)
    name, value = cookie(role, seconds)
    page.say("Network.setCookie", name=name, value=value, url=root(world), path="/console", httpOnly=True, sameSite="Strict")
    if where:
        visit(world, page, *where)
    return page


def stranger(world, **size):
    """A page without a session."""
    return Page(world.browser, context=world.browser.say("Target.createBrowserContext")["browserContextId"], **size)


def root(world):
    return f"http://127.0.0.1:{world.hub.port}/console/"


def visit(world, page, *where):
    page.go(root(world) + "#/" + "/".join(urllib.parse.quote(part, safe="") for part in ("1", *where)))


def clean(page):
    """What is wrong with what the page shows; nothing, if it is well."""
    found, strangers = page.judge(), page.strangers()
    return [text for holds, text in (
        (not found["seen"], f"errors {found['seen']}"), (not strangers, f"asks {strangers}"), (found["hacked"] is None, "ran foreign code"),
        (not found["images"] and found["scripts"] == 1, f"foreign images {found['images']} or scripts"),
        (found["wide"] <= 0, f"is {found['wide']} px too wide"), (not found["faint"], f"faint text {found['faint']}"),
        (not found["nameless"], f"controls without a name {found['nameless']}"),
        (found["headings"] == 1 and found["mains"] == 1, f"{found['headings']} headings, {found['mains']} mains")) if not holds]


def status(page, method, path, body="{}"):
    """The status of what the page itself asks the console's API."""
    options = {"method": method, "headers": {"X-Tandem-Console": "1"}, **({} if method == "GET" else {"body": body})}
    return page.value(f"fetch({json.dumps(path)}, {json.dumps(options)}).then((answer) => answer.status)")


def seconds_to_answer(world, page, name, answer):
    """Did they get the last news? A name and Enter, a click on the event, and the answer's text is there."""
    visit(world, page, "now")
    began = time.monotonic()
    page.press("/")
    page.type(name)
    page.wait(f"document.querySelector('#found [role=option]')?.textContent.includes({json.dumps(name)})")
    page.press("Enter")
    page.click("news", "[role=grid] a")
    page.wait_text(answer)
    return time.monotonic() - began


class People:
    """A session with somebody on the screen, somebody away, somebody without a device, and somebody with a hostile name."""

    def __init__(self, world):
        self.ana, self.ben, self.cleo = world.people("console", "anne", "bert", "cleo")
        self.page = world.open(self.ana)
        call(world, "PUT", f"/sessions/console/participants/{HOSTILE}", {"name": HOSTILE_NAME})
        call(world, "PUT", f"/users/{HOSTILE}/devices/{FORMULA}", {
            "token": f"hostile:APA91b{'z' * 120}", "platform": "android", "app_version": "<b>1</b>"})
        call(world, "PUT", f"/sessions/console/participants/{DORA}", {"name": "Dora"})
        # The page says that it is in front over the socket.
        time.sleep(1.5)
