"""The servers beside each other: how each is started with one thread on one core, and how the load tester speaks to it."""

import json
import os
import re
import resource
import shutil
import socket
import ssl
import urllib.request

from common import programs as p
from common.certificate import make_certificate

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = os.path.join(HERE, "peers")
START_SECONDS = 30
APP, KEY, SECRET = "1", "compare-key", "compare-secret"
NCHAN = "/usr/lib/nginx/modules/ngx_nchan_module.so"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Server:
    """One kind of server. `name` is the row of the table, `dialect` what the load tester calls its protocol."""

    dialect = ""
    # Its frames are the event's data and nothing else.
    sends_bare_data = False
    # Publishes are HTTP requests, each with an answer.
    answers_publishes = True

    # Whether it can serve TLS here.
    speaks_tls = True

    def __init__(self, name, root, venv, is_secure=False):
        self.name, self.root, self.venv, self.is_secure = name, root, venv, is_secure
        self.process, self.port, self.output = None, 0, ""
        # The paths of a certificate and of its key; empty: plain connections.
        self.identity = ()

    def missing(self):
        """What has to be installed for it, as one line; None: nothing."""

    def build(self, folder):
        """Once, before the first round."""

    def command(self, folder):
        """What runs, and its environment; files go into `folder`."""
        raise NotImplementedError

    def version(self):
        return ""

    def options(self):
        """Of the load tester, beside its address and its dialect."""
        return []

    def counts(self):
        """Deliveries and write calls since the start, as the server counts them; None: it does not."""

    def start(self, programs, folder, cores):
        os.makedirs(folder, exist_ok=True)
        self.output = os.path.join(folder, "output")
        if self.is_secure:
            self.identity = make_certificate(folder)
        command, settings = self.command(folder)
        self.process = programs.start(command, self.output, settings=p.environment(**settings), cores=cores)
        self.port = p.wait_until(lambda: self.ready(p.text(self.output)), self.process, START_SECONDS, self.name, self.output)

    def ready(self, output):
        """The port, once it is served."""
        return p.port_in(output)

    def url(self, scheme):
        return f"{scheme}{'s' if self.is_secure else ''}://127.0.0.1:{self.port}"

    def fetch(self, path):
        # The certificate is of this run.
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=ssl._create_unverified_context()))
        with opener.open(f"{self.url('http')}{path}", timeout=10) as answer:
            return answer.read().decode()


class Tandem(Server):
    dialect = "pusher"
    binary = ".build/release/tandem"

    def missing(self):
        if not os.access(os.path.join(self.root, self.binary), os.X_OK):
            return "the release build of the hub: make compare, which builds it"

    def command(self, folder):
        os.makedirs(os.path.join(folder, "channels"), exist_ok=True)
        configuration = os.path.join(folder, "tandem.yaml")
        tls = ", tls: {{ cert: {}, key: {} }}".format(*self.identity) if self.identity else ""
        with open(configuration, "w") as file:
            file.write(
                f"listen: {{ host: 127.0.0.1, port: 0, loops: 1{tls} }}\n"
                f'apps:\n  - {{ id: "{APP}", key: {KEY}, secret: {SECRET} }}\n'
                # The same room for those who are behind as everybody else has here.
                "limits: { send_queue_bytes_max: 64MiB }\n")
        return [
            os.path.join(self.root, self.binary), "serve", "--config", configuration, "--data", os.path.join(folder, "data"), "--channels",
            os.path.join(folder, "channels")], {}

    def options(self):
        return ["--app-id", APP, "--key", KEY, "--secret", SECRET]

    def counts(self):
        try:
            text = self.fetch("/metrics")
        except OSError:
            return None
        totals = [
            sum(float(value) for value in re.findall(rf"^tandem_{name}_total(?:{{[^}}]*}})? (\S+)$", text, re.M))
            for name in ("deliveries", "writes")]
        return tuple(totals) if all(totals) else None


class Floor(Server):
    dialect = "floor"
    sends_bare_data = True
    arguments = []

    def missing(self):
        if not shutil.which("cc"):
            return "a C compiler: apt-get install gcc libc6-dev libssl-dev"

    def build(self, folder):
        self.binary = os.path.join(folder, "floor")
        if not os.path.exists(self.binary):
            p.run(["cc", "-O2", "-Wall", "-o", self.binary, os.path.join(PEERS, "floor.c"), "-lssl", "-lcrypto"], "compiling floor.c")

    def command(self, folder):
        return [self.binary, *self.arguments, *(["--tls", *self.identity] if self.identity else [])], {}

    def counts(self):
        counted = json.loads(self.fetch("/counts"))
        return counted["deliveries"], counted["sends"]


class FloorJoin(Floor):
    arguments = ["--join"]


class Socketify(Server):
    dialect = "socketify"
    sends_bare_data = True

    def python(self):
        return os.path.join(self.venv, "bin", "python")

    def missing(self):
        if not os.access(self.python(), os.X_OK):
            return f"uWebSockets: python3 -m venv {self.venv} && {self.venv}/bin/pip install -r loadtest/compare/requirements.txt"

    def command(self, folder):
        return [self.python(), os.path.join(PEERS, "socketify_server.py"), *self.identity], {}

    def version(self):
        return p.run([self.python(), "-c", "import importlib.metadata as m; print('socketify', m.version('socketify'))"], "asking socketify").strip()


class Nchan(Server):
    dialect = "nchan"
    sends_bare_data = True

    def missing(self):
        if not shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin") or not os.path.exists(NCHAN):
            return "nchan: apt-get install nginx-light libnginx-mod-nchan"

    def command(self, folder):
        self.chosen = free_port()
        configuration = os.path.join(folder, "nginx.conf")
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        with open(os.path.join(PEERS, "nginx.conf")) as file:
            settings = file.read().replace("FOLDER", folder).replace("PORT", str(self.chosen)).replace("CONNECTIONS", str(descriptors))
        tls = "ssl_certificate {}; ssl_certificate_key {}; ssl_protocols TLSv1.3;".format(*self.identity) if self.identity else ""
        settings = settings.replace("SECURE", "ssl" if tls else "").replace("TLS_LINES", tls)
        with open(configuration, "w") as file:
            # A worker of root gives its rights away, and then may not enter the folder.
            file.write(("user root;\n" if os.geteuid() == 0 else "") + settings)
        return [shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin"), "-p", folder, "-c", configuration], {}

    def ready(self, output):
        return self.chosen if answers(self.chosen) else 0

    def version(self):
        return p.run(["dpkg-query", "-W", "-f", "nchan ${Version}", "libnginx-mod-nchan"], "asking dpkg")


class NATS(Server):
    dialect = "nats"
    # Publishes are messages that nobody answers.
    answers_publishes = False
    speaks_tls = False

    def missing(self):
        if not shutil.which("nats-server"):
            return "nats-server: apt-get install nats-server"

    def command(self, folder):
        self.chosen = free_port()
        configuration = os.path.join(folder, "nats.conf")
        with open(os.path.join(PEERS, "nats.conf")) as file:
            settings = file.read().replace("WS_PORT", str(self.chosen)).replace("PORT", str(free_port()))
        with open(configuration, "w") as file:
            file.write(settings)
        return ["nats-server", "-c", configuration], {"GOMAXPROCS": "1"}

    def ready(self, output):
        return self.chosen if answers(self.chosen) else 0

    def version(self):
        return p.run(["nats-server", "--version"], "asking nats-server").strip()


KINDS = {"tandem": Tandem, "floor": Floor, "floor-join": FloorJoin, "socketify": Socketify, "nchan": Nchan, "nats": NATS}


def chosen(names, root, venv, is_secure=False):
    """The servers of these names; ends with what is missing, all of it at once."""
    unknown = [name for name in names if name not in KINDS]
    if unknown:
        p.fail(f"SERVERS knows {' '.join(KINDS)}, not {' '.join(unknown)}")
    plain = [name for name in names if is_secure and not KINDS[name].speaks_tls]
    if plain:
        p.fail(f"TLS=1 leaves out {' '.join(plain)}: name the others in SERVERS")
    servers = [KINDS[name](name, root, venv, is_secure) for name in names]
    missing = sorted({text for text in (server.missing() for server in servers) if text})
    if missing:
        p.fail("not everything is installed; `make compare` does it. Missing:\n  " + "\n  ".join(missing))
    return servers
