"""A service manager for one unit in a chroot, where systemd cannot run: what maintainer scripts ask systemctl for, it does.

It follows the unit file: account, environment, limits, readiness and signs of life by sd_notify(3), reload and stop by their signals.
"""

import grp
import os
import pwd
import resource
import shlex
import signal
import socket
import subprocess
import threading
import time

UNIT = "tandem.service"
STAND_IN = """#!/bin/sh
# Hands the words to the test outside, and ends with its answer.
printf '%s\\n' "$*" >/run/manager/ask
read -r code text </run/manager/answer
[ -z "$text" ] || echo "$text"
exit "$code"
"""


class Manager:
    def __init__(self, root):
        self.root = root
        self.process = None
        self.asked = []
        self.heard = []
        self.alive_at = []
        self.heard_something = threading.Condition()
        for folder in ("run/manager", "run/systemd/system"):
            os.makedirs(self.path(folder), exist_ok=True)
        for name in ("ask", "answer"):
            os.mkfifo(self.path(f"run/manager/{name}"))
        with open(self.path("usr/bin/systemctl"), "w") as file:
            file.write(STAND_IN)
        os.chmod(self.path("usr/bin/systemctl"), 0o755)
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(self.path("run/systemd/notify"))
        os.chmod(self.path("run/systemd/notify"), 0o777)
        for work in (self.listen, self.serve):
            threading.Thread(target=work, daemon=True).start()

    def path(self, name):
        return os.path.join(self.root, name.lstrip("/"))

    # What the hub says.

    def listen(self):
        while True:
            message = self.notify.recv(4096).decode()
            with self.heard_something:
                if message == "WATCHDOG=1":
                    self.alive_at.append(time.monotonic())
                else:
                    self.heard.append(message)
                self.heard_something.notify_all()

    def wait_for(self, word, since, seconds):
        end = time.monotonic() + seconds
        with self.heard_something:
            while not any(word in message for message in self.heard[since:]):
                if time.monotonic() > end or self.process.poll() is not None:
                    return False
                self.heard_something.wait(0.05)
        return True

    # What the scripts ask for.

    def serve(self):
        while True:
            with open(self.path("run/manager/ask")) as file:
                words = file.read().split()
            self.asked.append(" ".join(words))
            code, text = self.answer(words)
            with open(self.path("run/manager/answer"), "w") as file:
                file.write(f"{code} {text}\n")

    def answer(self, words):
        verb, *units = [word for word in words if not word.startswith("-")]
        if verb == "daemon-reload":
            return 0, ""
        if verb == "is-enabled":
            wanted = self.path(f"etc/systemd/system/multi-user.target.wants/{units[0]}")
            return (0, "enabled") if os.path.islink(wanted) else (1, "disabled")
        link = self.path(f"etc/systemd/system/multi-user.target.wants/{UNIT}")
        if verb in ("preset", "enable") and UNIT in units and not os.path.islink(link):
            os.makedirs(os.path.dirname(link), exist_ok=True)
            os.symlink(f"/lib/systemd/system/{UNIT}", link)
        if verb == "disable" and UNIT in units and os.path.islink(link):
            os.unlink(link)
        if UNIT not in units:
            return (3, "inactive") if verb == "is-active" else (0, "")
        if verb == "is-active":
            return (0, "active") if self.is_active() else (3, "inactive")
        deeds = {"start": self.start, "stop": self.stop, "restart": self.restart, "reload": self.reload}
        return (int(not deeds[verb]()) if verb in deeds else 0), ""

    def is_active(self):
        return self.process is not None and self.process.poll() is None

    def restart(self):
        return self.stop() and self.start()

    def settings(self):
        """The unit's values by their keys; the last of several, except for those that are joined."""
        found = {}
        with open(self.path(f"lib/systemd/system/{UNIT}")) as file:
            for line in file:
                if "=" in line and not line.startswith("#"):
                    key, value = line.strip().split("=", 1)
                    found[key] = value
        return found

    def environment(self, settings):
        values = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "LANG": "C.UTF-8", "NOTIFY_SOCKET": "/run/systemd/notify"}
        values["WATCHDOG_USEC"] = str(int(settings["WatchdogSec"]) * 1_000_000)
        file = self.path(settings["EnvironmentFile"].lstrip("-"))
        if os.path.exists(file):
            with open(file) as opened:
                values.update(line.strip().split("=", 1) for line in opened if "=" in line and not line.startswith("#"))
        return values

    def start(self):
        if self.is_active():
            return True
        settings, since = self.settings(), len(self.heard)
        user, root = settings["User"], self.root
        limit = int(settings["LimitNOFILE"])

        def become():
            os.chroot(root)
            os.chdir(settings["WorkingDirectory"])
            account = pwd.getpwnam(user)
            hard = min(limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            os.umask(int(settings["UMask"], 8))
            os.setgroups([])
            os.setgid(grp.getgrnam(settings["Group"]).gr_gid)
            os.setuid(account.pw_uid)
            os.setsid()

        log = open(self.path("var/log/tandem.log"), "ab")
        self.process = subprocess.Popen(
            shlex.split(settings["ExecStart"]), executable=settings["ExecStart"].split()[0], env=self.environment(settings),
            preexec_fn=become, stdin=subprocess.DEVNULL, stdout=log, stderr=log, close_fds=True)
        return self.wait_for("READY=1", since, 60)

    def reload(self):
        since = len(self.heard)
        assert self.settings()["ExecReload"] == "/bin/kill -HUP $MAINPID"
        self.process.send_signal(signal.SIGHUP)
        return self.wait_for("RELOADING=1", since, 10) and self.wait_for("READY=1", since, 10)

    def stop(self):
        if not self.is_active():
            return True
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(int(self.settings()["TimeoutStopSec"])) == 0
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return False

    def log(self):
        with open(self.path("var/log/tandem.log"), errors="replace") as file:
            return file.read()
