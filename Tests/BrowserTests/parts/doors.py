"""The console's door on a real hub: passwords, their tries, roles, and the end of a session."""

import http.client
import json

import stage

SIGN = "document.querySelector('main.sign') !== null"
TOLD = "document.querySelector('[role=alert]').textContent"
NOW = "document.querySelector('main[data-ready=now]') !== null"


def try_all(world):
    world.stage()
    signs(world)
    looks(world)
    ends(world)
    origins(world)


def enter(page, password):
    """By keyboard alone: the field has the focus, and what it holds is replaced."""
    page.value("document.querySelector('#password').select()")
    page.type(password)
    page.press("Enter")


def signs(world):
    page = stage.stranger(world)
    page.go(stage.root(world))
    isReady = page.value(f"{SIGN} && document.activeElement.id === 'password'")
    world.expect(isReady, "who has no session meets the sign-in, with the cursor in it")
    page.picture("sign-in")
    faults = stage.clean(page)
    enter(page, "not-the-password")
    page.wait_text("the password is wrong")
    world.expect(page.value(SIGN), "a wrong password says so")
    enter(page, stage.OPERATOR)
    page.wait(NOW)
    page.wait_text("operator")
    [kept] = page.say("Network.getCookies")["cookies"]
    safe = kept["httpOnly"] and kept["sameSite"] == "Strict" and kept["path"] == "/console" and page.value("document.cookie") == ""
    world.expect(safe, "the right one opens it, with a cookie that no script reads")
    page.click("Sign out")
    page.wait(SIGN)
    world.expect(stage.status(page, "GET", "api/apps") == 401, "signing out ends the session")
    for number in range(3):
        page.value(f"{TOLD} = ''")
        enter(page, f"guess-number-{number}")
        page.wait(f"{TOLD} === 'the password is wrong'")
    enter(page, stage.OPERATOR)
    page.wait_text("too many tries")
    world.expect(page.value(SIGN), "the sixth try of a minute is refused, though the password is right")
    world.expect(not faults + stage.clean(page), f"the sign-in is well{faults + stage.clean(page) or ''}")
    page.close()


def closed(page, *names):
    """Whether the page has a button of each name, and all of them are closed."""
    found = page.value(f"""
      [...document.querySelectorAll("main button")].filter((one) => {json.dumps(names)}.includes(one.textContent))
        .map((one) => [one.textContent, one.disabled])""")
    return {name for name, _ in found} == set(names) and all(isClosed for _, isClosed in found)


def looks(world):
    """A viewer sees every screen and can do nothing, whatever the page would send."""
    people, event = world.console, stage.publish(world)
    page = stage.operator(world, "person", people.ben["user"], event, role="viewer")
    page.wait_text("Right now")
    buttons = ("Send a test", "Link for an hour", "Forget")
    world.expect(closed(page, *buttons), "a viewer's buttons on a person are closed")
    stage.visit(world, page, "try", stage.CHANNEL, "news")
    world.expect(closed(page, "Who would get it?", "Publish"), "and those of Try it")
    body = json.dumps({"name": "news", "channel": stage.CHANNEL, "data": "{}"})
    acts = [("POST", "events", body), ("POST", "notifications", "{}"), ("POST", "dead-letters/replay", "{}"),
            ("DELETE", "dead-letters", ""), ("DELETE", f"users/{people.ben['user']}/devices/x", ""),
            ("POST", "links", json.dumps({"event": event})), ("PUT", "sessions/other", "{}"), ("POST", "users/x/terminate_connections", "")]
    refused = [stage.status(page, method, f"api/apps/1/{path}", body) for method, path, body in acts]
    world.expect(set(refused) == {403}, f"whatever a viewer sends is refused: {refused}")
    token = stage.status(page, "POST", f"api/apps/1/sessions/console/participants/{people.ben['user']}/token")
    world.expect(token == 403 and stage.status(page, "GET", "api/apps/1/events") == 200, "while looking is not")
    world.expect(not page.judge()["seen"], "and the page meets no error")
    page.close()


def ends(world):
    """A session that expires while its page is open."""
    page = stage.operator(world, "channels", seconds=8)
    page.wait_text(stage.CHANNEL)
    page.wait_text("Your session is over")
    world.expect(page.value(f"{SIGN} && !document.body.innerText.includes({json.dumps(stage.CHANNEL)})"),
                 "a session that ends takes what it showed away, and asks for the password")
    page.close()


def origins(world):
    """A browser without Fetch Metadata tells the page's origin alone."""
    name, value = stage.cookie("viewer")

    def ask(origin):
        connection = http.client.HTTPConnection("127.0.0.1", world.hub.port, timeout=30)
        connection.request("GET", "/console/api/apps", headers={"Cookie": f"{name}={value}", "Origin": origin})
        status = connection.getresponse().status
        connection.close()
        return status

    own = f"http://127.0.0.1:{world.hub.port}"
    told = {origin: ask(origin) for origin in (own, f"http://127.0.0.1:{world.hub.port + 1}", "http://evil.example", "null")}
    world.expect(list(told.values()) == [200, 403, 403, 403], f"an old browser's page is let in by its origin, others are not: {told}")
