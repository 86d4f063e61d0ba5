"""Runs the commands that the documents print, in their order, and compares the answers printed below them."""

import re
import subprocess
import sys
from pathlib import Path

import yaml

from tandem_client import *

ROOT = Path(__file__).resolve().parents[4]
SEPARATOR = "\x1e"
# Without its progress, and with a line end behind the answer; the page's own output is otherwise untouched.
PREAMBLE = 'curl() { command curl -sS "$@"; echo; }\ntandem() { "$TANDEM" "$@"; }'
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def run(blocks, preamble):
    """Runs the blocks one after the other in one shell, which keeps their variables, and returns what each printed."""
    text = "\nprintf '\\036'\n".join([preamble] + blocks)
    # A command that fails ends it.
    shell = subprocess.run([os.environ.get("DOCUMENT_SHELL", "bash"), "-eu", "-c", text], capture_output=True, text=True, timeout=PATIENCE * 3)
    check(shell.returncode == 0, shell.returncode, shell.stdout[-2000:], shell.stderr[-2000:])
    return shell.stdout.split(SEPARATOR)[1:]


def values(text):
    """The JSON values that follow one another in a text, statuses among them."""
    decoder, position, found = json.JSONDecoder(), 0, []
    # The answers that are no JSON.
    text = text.strip().replace("202 ACCEPTED", '"202 ACCEPTED"')
    text = re.sub(r"^tandem_\w+ \d+$", lambda line: json.dumps(line[0]), text, flags=re.MULTILINE)
    while position < len(text):
        value, position = decoder.raw_decode(text, position)
        found.append(value)
        position = re.compile(r"\s*").match(text, position).end()
    return found


def fits(printed, answered):
    """Whether an answer is the printed one, but for moments, and for what an ellipsis stands for."""
    if isinstance(printed, dict) and isinstance(answered, dict):
        return printed.keys() == answered.keys() and all(fits(printed[key], answered[key]) for key in printed)
    if isinstance(printed, list) and isinstance(answered, list):
        return len(printed) == len(answered) and all(map(fits, printed, answered))
    if isinstance(printed, str) and isinstance(answered, str):
        if MOMENT.fullmatch(printed):
            return bool(MOMENT.fullmatch(answered))
        return bool(re.fullmatch(".+".join(map(re.escape, printed.split("…"))), answered, re.DOTALL))
    return type(printed) is type(answered) and printed == answered


def http_api():
    """`docs/http-api.md`: every ```sh block, and the ```json block that follows it."""
    page = (ROOT / "docs/http-api.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```\n(?:```(?:json|text)\n(.*?)^```\n)?", page, re.DOTALL | re.MULTILINE)
    outputs = run([commands.replace("http://127.0.0.1:6001", HUB_URL) for commands, _ in blocks], PREAMBLE)
    for (commands, printed), output in zip(blocks, outputs, strict=True):
        check(fits(values(printed), values(output)), commands, printed, output)
    shown = requests_in("\n".join(commands for commands, _ in blocks))
    for path, item in yaml.safe_load((ROOT / "docs/openapi.yaml").read_text())["paths"].items():
        shape = re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)))
        for method in item.keys() - {"parameters"}:
            check(any(m == method.upper() and shape.fullmatch(p) for m, p in shown), "no curl for it in the page", method, path)
    finish(blocks=len(blocks), answers=sum(1 for _, printed in blocks if printed))


def requests_in(commands):
    """Method and path of every request that the commands send."""
    commands = commands.replace("\\\n", " ")
    signed = re.findall(r"\$\(signed ([A-Z]+) (/[^\s)]+)", commands)
    unsigned = [
        (method or ("POST" if " -d " in line else "GET"), path)
        for line in commands.splitlines() for method, path in re.findall(r"curl (?:.*?-X ([A-Z]+))?.*?\$hub(/[^\s\")]*)", line)]
    return signed + unsigned


def readme():
    """The first commands that a newcomer types, with this build of `tandem` in place of the optimised one."""
    page = (ROOT / "README.md").read_text()
    block = next(block for block in re.findall(r"((?:^    .*\n)+)", page, re.MULTILINE) if "alias tandem=" in block)
    commands = "\n".join(line[4:] for line in block.splitlines())
    # Scripts expand no aliases.
    commands = re.sub(r"alias tandem=\S+", "", commands)
    [output] = run([commands.replace("http://127.0.0.1:6001", HUB_URL)], PREAMBLE)
    wait_for(lambda: "push.outcome=skipped_unconfigured" in open(os.environ["HUB_LOG"]).read(), "the notification in the log")
    session, joined, published = values(output)
    finish(session=session, joined=joined, published=published)


LATE = ", hub late"


def unmeasured(value):
    """Without the durations: no two runs have the same. A hub on a busy machine says that it was late."""
    if isinstance(value, str):
        return value.removesuffix(LATE)
    if isinstance(value, dict):
        return {key: type(found).__name__ if key.endswith("_ms") else unmeasured(found) for key, found in value.items()}
    return [unmeasured(found) for found in value] if isinstance(value, list) else value


def why():
    """`docs/why-not-told.md`: its story, then the trail and the table that it prints."""
    page = (ROOT / "docs/why-not-told.md").read_text()
    printed = {kind: re.search(rf"^```{kind}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[1] for kind in ("json", "text")}
    gateways, channel, phone = Gateways(), "presence-quiz-monday", apns_token("a")
    create_session("monday", "ABC123")
    expect(signed("PUT", "/sessions/monday/participants/ada", {"name": "Ada"}))
    expect(signed("PUT", "/users/ada/devices/adas-phone", {"token": phone, "platform": "ios"}))
    token = expect(signed("POST", "/sessions/monday/participants/ada/token", {"scope": "session"}))
    gateways.fault(phone, {"status": 503, "reason": "ServiceUnavailable", "times": 1}, {"status": 410, "reason": "Unregistered"})
    ada = Socket()
    ada.subscribe(channel, participant=token)
    ada.send("client-app-state", {"state": "foreground"}, channel)
    ada.pong()
    with ada.standing_still():
        event = expect(signed("POST", "/events", {"name": "session-started", "channel": channel, "data": "{}"}))["event_id"]

        def trail():
            found = expect(signed("GET", f"/events/{event}/deliveries", params={"user": "ada"}))
            return found if found["deliveries"][0]["state"] == "failed" and not found["open"] else None

        found = wait_for(trail, "the end of the push")
    table = subprocess.run([os.environ["TANDEM"], "trace", event, "--user", "ada"], capture_output=True, text=True, check=True).stdout.replace(LATE, "")
    own = printed["json"]
    for name, value in (("event_id", event), ("nid", found["deliveries"][0]["nid"])):
        own = re.sub(rf'"{name}": "[^"]+"', f'"{name}": "{value}"', own)
    check(fits(unmeasured(json.loads(own)), unmeasured(found)), own, json.dumps(found))
    lines = [[re.sub(r"[0-9a-f-]{30,}|\d+", "0", line).split() for line in text.splitlines()] for text in (printed["text"], table)]
    check(lines[0] == lines[1], printed["text"], table)
    row = found["deliveries"][0]
    finish(known=row["known"], state=row["state"], answers=len(row["pushes"][0]["answers"]))


{f.__name__: f for f in (http_api, readme, why)}[sys.argv[1]]()
