"""What an operator does with the package, in order, and what has to be true after each step."""

import contextlib
import json
import os
import re
import shutil
import socket
import sqlite3
import stat
import subprocess
import time
import urllib.parse
import urllib.request

from chroot import Chroot
from clients import CHANNEL, Crowd
from manager import Manager

CONFIGURATION = "/etc/tandem/tandem.yaml"
STORE = "/var/lib/tandem/tandem.db"
SECONDS_TO_FIRST_PUSH_MAX = 60


class Try:
    def __init__(self, folder, repository, packages, count, build):
        self.folder, self.repository, self.count, self.build = folder, repository, count, build
        self.new, self.old = packages
        self.mistakes = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        cache = os.path.join(repository, ".build", "package")
        os.makedirs(cache, exist_ok=True)
        self.chroot = Chroot(folder, cache)
        self.manager = Manager(self.chroot.root)
        self.gateways = None

    def expect(self, holds, text):
        print(f"  {'ok  ' if holds else 'FAIL'}  {text}", flush=True)
        if not holds:
            self.mistakes.append(text)

    def until(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    # The machine before.

    def prepare(self):
        print("a Debian 12 with simulated gateways beside it")
        keys = self.chroot.path("etc/gateways")
        program = os.path.join(self.repository, ".build", self.build, "tandem-gateways")
        log = open(os.path.join(self.folder, "gateways.log"), "w")
        self.gateways = subprocess.Popen([program, "--data", keys], stdout=log, stderr=log)
        file = os.path.join(keys, "gateways.env")
        self.expect(self.until(lambda: os.path.exists(file) and "ready" in open(log.name).read(), 30), "the gateways run")
        settings = dict(re.findall(r"^export (\w+)='(.*)'$", open(file).read(), re.M))
        self.control = settings.pop("TANDEM_GATEWAYS_CONTROL")
        # The account that will read them does not exist yet.
        os.chmod(keys, 0o755)
        for name in os.listdir(keys):
            os.chmod(os.path.join(keys, name), 0o644)
        inside = {name: value.replace(self.chroot.root, "") for name, value in settings.items()}
        lines = [f"TANDEM_PORT={self.port}"] + [f"{name}={value}" for name, value in inside.items()]
        self.chroot.write("etc/default/tandem", "\n".join(lines) + "\n")
        for name in ("swift", "swiftc", "make", "gcc", "cc", "python3"):
            self.expect(self.chroot.run("sh", "-c", f"command -v {name}", check=False).returncode != 0, f"there is no {name}")
        for package in (self.new, self.old):
            shutil.copy(package, self.chroot.path("root"))

    def package(self, file):
        return f"/root/{os.path.basename(file)}"

    def apt(self, *words, check=True):
        return self.chroot.run("apt-get", "-q", "-y", "-o", "Dpkg::Use-Pty=0", *words, check=check).stdout

    def tandem(self, *words, check=True):
        return self.chroot.run("tandem", *words, check=check).stdout

    # The steps.

    def install(self):
        print("apt install, first event, first push")
        self.apt("update")
        began = time.monotonic()
        output = self.apt("install", "--no-install-recommends", self.package(self.old))
        installed = time.monotonic()
        print("    " + "\n    ".join(line for line in output.splitlines() if "tandem" in line and "Get:" not in line))
        self.expect(self.manager.is_active(), "the hub runs after the installation")
        self.expect("READY=1" in "\n".join(self.manager.heard), "it told its manager that it is ready")
        self.key = re.search(r'key: "(\w+)"', self.chroot.read(CONFIGURATION))[1]
        self.crowd = Crowd(self.port, self.key, 1)
        self.expect(self.until(lambda: self.crowd.subscribed() == 1, 20), "a client is subscribed")
        self.publish()
        self.expect(self.until(lambda: self.crowd.heard(1) == 1, 20), "it hears the first event")
        event = time.monotonic()
        self.crowd.end()
        self.first_push()
        pushed = time.monotonic()
        self.expect(pushed - began < SECONDS_TO_FIRST_PUSH_MAX, (
            f"installed after {installed - began:.1f} s, first event after {event - began:.1f} s, "
            f"first push after {pushed - began:.1f} s"))

    def publish(self):
        self.tandem("publish", "--config", CONFIGURATION, "--url", self.url, CHANNEL, "greeting", '{"text":"hello"}')

    def first_push(self):
        common = ("--config", CONFIGURATION, "--url", self.url)
        self.tandem("api", *common, "PUT", "/sessions/monday", '{"definition":"quiz","join_code":"ABC123"}')
        body = json.dumps({"name": "Ada", "email": "ada@example.com", "device_token": "a" * 64, "device_platform": "ios"}).encode()
        request = urllib.request.Request(
            f"{self.url}/api/scenarios/sessions/ABC123/join?app_key={self.key}", body, {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=10).read()
        self.tandem("publish", *common, "presence-quiz-monday", "session-started")
        requests = f"{self.control}/requests"
        self.expect(self.until(lambda: json.load(urllib.request.urlopen(requests)), 30), "the simulated gateway has the push")

    def look(self):
        print("files, account, commands")
        root = self.chroot
        uid, gid = re.search(r"^tandem:x:(\d+):(\d+):.*:/usr/sbin/nologin$", root.read("/etc/passwd"), re.M).groups()
        for path, owner, group, mode in (
            (CONFIGURATION, 0, int(gid), 0o640), ("/var/lib/tandem", int(uid), int(gid), 0o750), (STORE, int(uid), int(gid), 0o600),
            ("/etc/tandem/channels/quiz.yaml", 0, 0, 0o644), ("/usr/bin/tandem", 0, 0, 0o755),
        ):
            found = os.stat(root.path(path))
            self.expect(
                (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (owner, group, mode),
                f"{path}: {found.st_uid}:{found.st_gid} {stat.S_IMODE(found.st_mode):o}")
        secrets = re.findall(r'secret: "(\w+)"', root.read(CONFIGURATION))
        self.expect(len(secrets) == 2 and not any(secret in self.manager.log() for secret in secrets), "the log has no secret")
        self.expect("warning" not in self.tandem("check", "--config", CONFIGURATION), "tandem check has no warning")
        self.expect(root.run("tandem", "health", "--ready", "--url", self.url).stdout == "", "tandem health is content")
        print("    " + "\n    ".join(self.tandem("--version").splitlines()))
        found = subprocess.run(["ldd", root.path("/usr/bin/tandem")], capture_output=True, text=True).stdout
        self.expect("libswift" not in found and "Foundation" not in found, "no library of Swift's is loaded")
        pages = os.listdir(root.path("/usr/share/man/man1"))
        count = sum(page.startswith("tandem") for page in pages)
        self.expect(count > 20 and "tandem-serve.1.gz" in pages, f"{count} manual pages")

    def reload(self):
        print("reload")
        name = "etc/tandem/channels/quiz.yaml"
        self.chroot.write(name, "# A line of the operator's.\n" + self.chroot.read(name))
        self.expect(self.chroot.run("systemctl", "reload", "tandem.service", check=False).returncode == 0, "systemctl reload")
        self.expect("channel definitions reloaded" in self.manager.log(), "the log says so")
        self.chroot.write(CONFIGURATION, self.chroot.read(CONFIGURATION) + "# Changed by the operator.\n")

    def change(self, what, package, *options):
        """Another version under connected clients."""
        print(f"{what} under {self.count} clients")
        crowd = Crowd(self.port, self.key, self.count)
        self.expect(self.until(lambda: crowd.subscribed() == self.count, 120), f"{self.count} clients are subscribed")
        before = self.manager.process.pid
        kept = [self.chroot.read(name) for name in (CONFIGURATION, "etc/tandem/channels/quiz.yaml")]
        began = time.monotonic()
        asked = len(self.manager.asked)
        self.apt("install", *options, self.package(package))
        took = time.monotonic() - began
        print("    systemctl was asked: " + "; ".join(self.manager.asked[asked:]))
        self.expect(self.manager.is_active() and self.manager.process.pid != before, f"another process serves, after {took:.1f} s of apt")
        version = self.chroot.run("dpkg-query", "-W", "-f", "${Version}", "tandem").stdout
        self.expect(version in os.path.basename(package), f"version {version}")
        back = self.until(lambda: crowd.subscribed() == self.count, 60)
        away = sorted(client.away for client in crowd.clients)
        self.expect(back, f"all are back: the median after {away[self.count // 2]:.1f} s, the last after {away[-1]:.1f} s")
        self.expect(
            crowd.closes == {4200: self.count}, f"each was told to reconnect: {crowd.closes}; {crowd.failures} tries met no hub")
        heard = max(client.events for client in crowd.clients)
        self.publish()
        self.expect(self.until(lambda: crowd.heard(heard + 1) == self.count, 30), "an event reaches every one of them, once")
        crowd.end()
        now = [self.chroot.read(name) for name in (CONFIGURATION, "etc/tandem/channels/quiz.yaml")]
        self.expect(kept == now, "the operator's files are as they were")

    @staticmethod
    def change_store(path, statement):
        """Changes the store from outside. It stays the account's, and nothing waits in its log."""
        with contextlib.closing(sqlite3.connect(path)) as store:
            store.execute(statement)
            store.commit()
        folder = os.path.dirname(path)
        owner = os.stat(folder)
        for name in os.listdir(folder):
            os.chown(os.path.join(folder, name), owner.st_uid, owner.st_gid)

    def refuse(self):
        print("a store that a later release has changed")
        self.chroot.run("systemctl", "stop", "tandem.service")
        path = self.chroot.path(STORE)
        self.change_store(path, "INSERT INTO grdb_migrations VALUES ('9999 later')")
        before = open(path, "rb").read()
        self.expect(not self.manager.start() and self.manager.process.wait(10) == 78, "the hub refuses it with 78")
        self.expect(open(path, "rb").read() == before, "and leaves it as it is")
        print("    " + self.manager.log().strip().splitlines()[-1])
        self.change_store(path, "DELETE FROM grdb_migrations WHERE identifier = '9999 later'")
        self.expect(self.manager.start(), "it serves again once the store is its own")

    def mistake(self):
        print("an upgrade with a mistake in the configuration")
        good, before = self.chroot.read(CONFIGURATION), self.manager.process.pid
        self.chroot.write(CONFIGURATION, good.replace("listen:", "lisen:"))
        output = self.apt("install", "--reinstall", self.package(self.new))
        self.expect("lisen" in output and "not started again" in output, "apt prints the mistake")
        self.expect(self.manager.is_active() and self.manager.process.pid == before, "the hub from before serves on")
        self.chroot.write(CONFIGURATION, good)

    def remove(self):
        print("remove, and purge")
        self.apt("remove", "tandem")
        self.expect(not self.manager.is_active() and self.manager.process.returncode == 0, "the hub has ended in order")
        self.expect(not os.path.exists(self.chroot.path("/usr/bin/tandem")), "the program is gone")
        kept = [os.path.exists(self.chroot.path(name)) for name in (CONFIGURATION, STORE)]
        self.expect(kept == [True, True], "configuration and store stay")
        before = self.chroot.read(CONFIGURATION)
        self.apt("install", self.package(self.new))
        self.expect(self.chroot.read(CONFIGURATION) == before and self.manager.is_active(), "and are in force after another installation")
        self.apt("purge", "tandem")
        left = self.chroot.run("find", "/etc/tandem", "/var/lib/tandem", "/usr/share/tandem", "/usr/share/doc/tandem", check=False).stdout
        self.expect(all("No such file" in line for line in left.splitlines()), f"a purge leaves nothing: {left.strip()[-300:]}")
        wants = self.chroot.path("etc/systemd/system/multi-user.target.wants")
        self.expect(not os.path.isdir(wants) or not any("tandem" in name for name in os.listdir(wants)), "nor a link of the unit")


    def container(self):
        """The last stage of the Dockerfile, step by step, and its command on a root that nobody can write to."""
        print("the steps of the container")
        with open(os.path.join(self.repository, "docs/deploy/docker/Dockerfile")) as file:
            stage = file.read().replace("\\\n", " ").split("\nFROM ")[-1]
        steps = dict(re.findall(r"^(USER|CMD|ENTRYPOINT|HEALTHCHECK) (.*)$", stage, re.M))
        self.chroot.run("deluser", "tandem")
        shutil.rmtree(self.chroot.path("etc/default/tandem"), ignore_errors=True)
        os.makedirs(self.chroot.path("package"))
        shutil.copy(self.new, self.chroot.path("package"))
        shutil.rmtree(self.chroot.path("run/systemd"))
        for step in re.findall(r"^RUN (?:--mount=\S+\s+)?(.*)$", stage, re.M):
            self.chroot.run("sh", "-ec", step)
        self.expect(not os.path.exists(self.chroot.path(CONFIGURATION)), "the image has no secret")
        root = self.read_only_root()
        user, group = map(int, steps["USER"].split(":"))
        command = json.loads(steps["ENTRYPOINT"]) + json.loads(steps["CMD"]) + ["--port", str(self.port)]

        def become():
            os.chroot(root)
            os.chdir("/var/lib/tandem")
            os.setgroups([])
            os.setgid(group)
            os.setuid(user)

        def start(**settings):
            log = open(os.path.join(self.folder, "container.log"), "w+")
            return subprocess.Popen(
                command, executable="/usr/bin/tandem", env={"PATH": "/usr/bin:/bin", **settings}, preexec_fn=become, stdout=log, stderr=log)

        self.expect(start().wait(30) == 78, "without secrets it refuses to serve other machines, with 78")
        process = start(TANDEM_APP_KEY="container-key", TANDEM_APP_SECRET="container-secret-0123")
        health = json.loads(re.search(r"CMD (\[.*\])", steps["HEALTHCHECK"])[1]) + ["--url", self.url]
        self.expect(self.until(lambda: self.chroot.run(*health, check=False).returncode == 0, 30), "its health check is content")
        process.terminate()
        self.expect(process.wait(30) == 0, "it ends in order")
        self.expect(self.chroot.run(*health, check=False).returncode == 1, "and the health check says so")

    def read_only_root(self):
        root = os.path.join(self.folder, "read-only")
        os.makedirs(root)
        subprocess.run(["mount", "--bind", self.chroot.root, root], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", root], check=True)
        inside = [("tmpfs", "tmp", "mode=1777"), ("tmpfs", "var/lib/tandem", "mode=1777"), ("proc", "proc", "ro")]
        self.chroot.mounted.insert(0, os.path.relpath(root, self.chroot.root))
        for kind, name, options in inside:
            subprocess.run(["mount", "-t", kind, "-o", options, kind, os.path.join(root, name)], check=True)
            self.chroot.mounted.insert(0, os.path.relpath(os.path.join(root, name), self.chroot.root))
        return root


def run(folder, repository, new, old, count, build):
    attempt = Try(folder, repository, (new, old), count, build)
    began = time.monotonic()
    try:
        attempt.prepare()
        attempt.install()
        attempt.look()
        attempt.reload()
        attempt.change("upgrade", new)
        attempt.change("downgrade", old, "--allow-downgrades")
        attempt.change("upgrade again", new)
        attempt.refuse()
        attempt.mistake()
        gaps = [later - earlier for earlier, later in zip(attempt.manager.alive_at, attempt.manager.alive_at[1:])]
        attempt.expect(len(gaps) > 0, f"{len(attempt.manager.alive_at)} signs of life")
        attempt.remove()
        attempt.container()
    finally:
        for process in (attempt.gateways, attempt.manager.process):
            if process and process.poll() is None:
                process.kill()
                process.wait()
        attempt.chroot.close()
    print(f"{len(attempt.mistakes)} failed, {time.monotonic() - began:.0f} s")
    return 1 if attempt.mistakes else 0
