"""`tandem demo` over its sockets: the page's requests as the page sends them, and a phone's app as a WebSocket client of its own."""

import re
import sys

import tandem_client
from tandem_client import *

URL = os.environ["DEMO_URL"]
PAGE = urllib.parse.urlsplit(URL)
ORIGIN = f"http://{PAGE.netloc}"


def state():
    return expect(http.get(URL + "state", timeout=PATIENCE))


def wish(name, **more):
    expect(http.post(URL + "wish", json={"wish": name, **more}, headers={"Origin": ORIGIN}, timeout=PATIENCE))


def score():
    return [state()["score"][name] for name in ("told", "told_twice", "missed", "under_way")]


def phone(name):
    return next(phone for phone in state()["phones"] if phone["id"] == name)


def question(number):
    return next((question for question in state()["questions"] if question["number"] == number), {"event": None, "people": {}, "trail": {}})


def ask(number):
    """The quiz master's button; comes back once the hub has taken the question."""
    wish("ask")
    wait_for(lambda: question(number)["event"], f"question {number} to be published")


def notes(name, number):
    return [note for note in phone(name)["notes"] if note["number"] == number]


def app(name):
    """The app of a phone on the screen, connected through the phone's own network."""
    settings = expect(http.get(f"{URL}settings/{name}", timeout=PATIENCE))
    tandem_client.HUB_PORT = settings["port"]
    tandem_client.HUB_URL = f"http://127.0.0.1:{settings['port']}"
    socket = Socket(f"/app/{settings['key']}?client=pusher-websocket-swift&version=10.1.10&protocol=7")
    socket.subscribe(settings["channel"], participant=settings)
    socket.send("client-app-state", {"state": "foreground"}, settings["channel"])
    socket.pong()
    return socket


def numbers(socket):
    return [json.loads(frame["data"])["number"] for frame in socket.all("question")]


def settled(expected):
    """The score once it is as expected, else as it is when patience ends."""
    end = time.monotonic() + PATIENCE
    while score() != expected and time.monotonic() < end:
        time.sleep(0.05)
    return score()


def hub_process():
    """The demo's child that is its hub."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            with open(f"/proc/{name}/stat") as file:
                parent = int(file.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if parent == int(os.environ["HUB_PID"]) and words[1:3] == [b"demo", b"hub"]:
            return int(name)
    raise SystemExit("the demo has no hub")


def phones():
    results = {}
    ask(1)
    results["closed"] = settled([3, 0, 0, 0])
    wait_for(lambda: all(notes(one["id"], 1) for one in state()["phones"]), "all four phones to ring")
    results["rang"] = [one["id"] for one in state()["phones"] if notes(one["id"], 1)]

    ana = app("ana")
    ask(2)
    wait_for(lambda: 2 in numbers(ana), "the question on the socket")
    wish("read", phone="ana", number=2, live=True)
    row = wait_for(lambda: (row := question(2)["trail"].get("ana")) and row["state"] == "confirmed" and row, "the receipt")
    results["live"] = [question(2)["people"]["ana"]["surface"], row["decision"], row["state"]]
    settled([6, 0, 0, 0])
    results["live_notes"] = len(notes("ana", 2))

    wish("network", phone="ana", mode="silent")
    ask(3)
    note = wait_for(lambda: notes("ana", 3), "the push behind the wait")[0]
    results["kept"] = [question(3)["people"]["ana"]["surface"], question(3)["trail"]["ana"]["decision"], note["kept"]]
    results["held_back"] = score()[3]
    wish("network", phone="ana", mode="open")
    results["lost"] = ana.closed()
    results["back"] = [question(3)["people"]["ana"]["surface"], notes("ana", 3)[0]["kept"]]
    ana = app("ana")
    wait_for(lambda: 3 in numbers(ana), "the missed question")
    wish("read", phone="ana", number=3, live=False)
    results["missed"], results["gone"] = numbers(ana)[-1], len(notes("ana", 3))

    wish("kill")
    wait_for(lambda: state()["hub"] == "down", "the hub's death")
    wish("ask")
    wait_for(lambda: any(question["number"] == 4 for question in state()["questions"]), "the question that waits")
    results["down"], results["down_score"] = [state()["hub"], question(4)["event"]], score()
    wish("restart")
    wait_for(lambda: question(4)["event"], "the question behind the restart")
    results["restarted"] = settled([12, 0, 0, 0])
    os.kill(hub_process(), signal.SIGKILL)
    results["by_hand"] = wait_for(lambda: state()["hub"] != "up" and state()["hub"], "the page to see it")
    finish(**results)


def kill_hub():
    wish("kill")
    finish(hub=wait_for(lambda: state()["hub"] == "down" and "down", "the hub's death"))


def listening(pid):
    """The addresses at which the process listens, but for loopback's IPv6 twin."""
    inodes = set()
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        try:
            found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{descriptor}"))
        except OSError:
            continue
        if found:
            inodes.add(found.group(1))
    addresses = set()
    for table in ("tcp", "tcp6"):
        with open(f"/proc/{pid}/net/{table}") as file:
            for line in list(file)[1:]:
                fields = line.split()
                if fields[3] == "0A" and fields[9] in inodes:
                    address = bytes.fromhex(fields[1].split(":")[0])
                    addresses.add(".".join(str(byte) for byte in reversed(address)) if len(address) == 4 else address.hex())
    return addresses


def strangers():
    def status(method, path, body=None, **headers):
        return http.request(method, ORIGIN + path, data=body, headers=headers, timeout=PATIENCE, allow_redirects=False).status_code

    page, own = PAGE.path, ORIGIN
    paths = [status("GET", path) for path in ("/", "/state", "/wish", "/" + "0" * (len(page) - 2) + "/state")]
    hosts = [status("GET", page + "state", Host=host) for host in ("evil.example", f"evil.example:{PAGE.port}", f"localhost:{PAGE.port}")]
    ask = '{"wish": "ask"}'
    origins = [status("POST", page + "wish", ask, Origin=origin) for origin in ("http://evil.example", "null", "https" + own[4:])]
    origins.append(status("POST", page + "wish", ask))
    wishes = [status("POST", page + "wish", body, Origin=own) for body in ("", "[]", '{"wish": "network", "phone": "ana", "mode": "up"}')]
    wishes.append(status("PUT", page + "wish", ask, Origin=own))
    answer = http.get(URL, timeout=PATIENCE)
    finish(
        paths=paths, hosts=hosts, origins=origins, wishes=wishes, asked=len(state()["questions"]),
        page=[answer.status_code, answer.headers.get("Content-Security-Policy", "")],
        listens=sorted(listening(os.environ["HUB_PID"]) | listening(hub_process())))


{"phones": phones, "kill_hub": kill_hub, "strangers": strangers}[sys.argv[1]]()
