"""One client process: many apps, each with a socket of its own, in one epoll loop. `client.py PLAN LOG`, orders on standard input.

Every app does what its plan says: connects, signs in, subscribes, tells its state or never does, leaves, comes back. Nothing is
shared with the hub but the protocol. PINGs are answered the moment they are read, because that is what a stock client does.

Orders: `go T` starts the plan's clock at T (seconds since 1970); the end of the input flushes the log and ends the process.

The log has one line per fact, tab-separated, with the time first:

    F time user n event-id visible          an event was read; visible: the app was on the screen
    S time user port                        subscribed, at the hub of this port
    E time user reason                      the connection ended: own doing, or "lost"
    V time user 0|1                         left the screen, or came back to it
    Z time user 0|1                         1: stops reading its socket without a word; 0: goes on
    L time seconds                          this process did not run for so long
"""

import errno
import heapq
import json
import os
import random
import select
import socket
import struct
import sys
import time
from collections import deque

sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import wire
from common import frames
from lane import Lane

STALL_SECONDS = 0.25
CONNECT_SECONDS_MAX = 10
# Each app has a connection of its own. Some hundreds share these, and one that waits for a hub that stands still keeps few waiting.
LANES = 32
BACK_AFTER = (0.1, 1.0)
# Comings and goings of a big presence channel are most of what is read, and nothing of what is measured.
COMINGS_AND_GOINGS = b'{"event":"pusher_internal:member_'


class App:
    """One participant's app."""

    def __init__(self, process, plan):
        self.process = process
        self.user, self.token, self.channel = plan["user"], plan["token"], plan["channel"]
        self.client, self.declares, self.signs_in = plan["client"], plan["declares"], plan["signs_in"]
        self.socket, self.buffer, self.out = None, bytearray(), bytearray()
        self.phase, self.wanted, self.visible, self.frozen = "off", False, True, False
        self.generation = 0
        self.socket_id = None
        self.auth = {}

    # What the plan has it do.

    def act(self, action, *arguments):
        getattr(self, "do_" + action)(*arguments)

    def do_connect(self):
        self.wanted = True
        if self.phase == "off":
            self.connect()

    def do_drop(self, back_after, is_reset):
        """The network goes: no close frame."""
        if self.socket is not None and is_reset:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.wanted = False
        self.leave("drop")
        self.process.after(back_after, self.do_connect)

    def do_close(self):
        """The app says goodbye."""
        self.wanted = False
        if self.socket is not None:
            self.send(frames.client_frame(frames.CLOSE, struct.pack("!H", 1000)))
        self.leave("close")

    def leave(self, reason):
        """Ends the connection by the app's own doing, which is told also where there was none yet, or none just now."""
        if self.phase != "subscribed":
            self.process.log("E", self.user, reason)
        self.end(reason)

    def do_hide(self):
        self.look(False)
        self.tell_state()

    def do_show(self):
        self.look(True)
        self.tell_state()

    def do_slip(self, answers_for, back_after):
        """Leaves the screen without a word: goes on answering for a while, then the system freezes it."""
        self.look(False)
        self.process.after(answers_for, self.do_freeze)
        self.process.after(back_after, self.do_return)

    def do_freeze(self):
        self.frozen = True
        self.process.log("Z", self.user, 1)
        if self.socket is not None:
            self.process.unregister(self.socket.fileno())

    def do_return(self):
        self.look(True)
        self.frozen = False
        self.process.log("Z", self.user, 0)
        if self.socket is not None:
            self.process.register(self.socket.fileno(), self, self.wanted_mask())
        elif self.wanted and self.phase == "off":
            self.connect()

    def look(self, visible):
        if self.visible != visible:
            self.visible = visible
            self.process.log("V", self.user, int(visible))

    def tell_state(self):
        if self.declares and self.phase == "subscribed":
            state = "foreground" if self.visible else "background"
            self.say({"event": "client-app-state", "channel": self.channel, "data": {"state": state}})

    # The connection.

    def connect(self):
        self.generation += 1
        generation = self.generation
        self.phase = "connecting"
        self.buffer.clear()
        self.out.clear()
        self.auth = {}
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port = self.process.next_port()
        code = self.socket.connect_ex(("127.0.0.1", self.port))
        if code not in (0, errno.EINPROGRESS):
            return self.end("lost")
        self.out += wire.upgrade(self.port, self.client)
        self.process.register(self.socket.fileno(), self, select.EPOLLIN | select.EPOLLOUT)
        self.process.after(CONNECT_SECONDS_MAX, lambda: self.too_slow(generation))

    def too_slow(self, generation):
        if self.generation == generation and self.phase not in ("off", "subscribed") and not self.frozen:
            self.end("slow")

    def wanted_mask(self):
        return select.EPOLLIN | (select.EPOLLOUT if self.out else 0)

    def send(self, data):
        if self.socket is None:
            return
        if not self.out:
            try:
                data = data[self.socket.send(data):]
            except BlockingIOError:
                pass
            except OSError:
                return self.end("lost")
        if data:
            self.out += data
            if not self.frozen:
                self.process.change(self.socket.fileno(), self.wanted_mask())

    def say(self, message):
        self.send(frames.client_frame(frames.TEXT, json.dumps(message).encode()))

    def on_event(self, mask):
        if mask & select.EPOLLOUT and self.out:
            try:
                del self.out[:self.socket.send(self.out)]
            except BlockingIOError:
                pass
            except OSError:
                return self.end("lost")
            if not self.out:
                self.process.change(self.socket.fileno(), select.EPOLLIN)
        if mask & ~select.EPOLLOUT:
            self.read()

    def read(self):
        try:
            chunk = self.socket.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            return self.end("lost")
        self.buffer += chunk
        if self.phase == "connecting":
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            if not self.buffer.startswith(b"HTTP/1.1 101"):
                return self.end("lost")
            del self.buffer[:end + 4]
            self.phase = "open"
        now = time.time()
        for opcode, payload in frames.take_frames(self.buffer, without=COMINGS_AND_GOINGS):
            if opcode == frames.PING:
                self.send(frames.client_frame(frames.PONG, payload))
            elif opcode == frames.TEXT:
                # The list of two thousand members is not read: that would take longer than all the rest of coming back.
                if payload.startswith(b'{"event":"pusher_internal:subscription_succeeded"'):
                    self.entered()
                else:
                    self.hear(json.loads(payload), now)
            elif opcode == frames.CLOSE:
                return self.end("closed" + (str(struct.unpack_from("!H", payload)[0]) if len(payload) >= 2 else ""))
            if self.socket is None:
                return

    def hear(self, message, now):
        event = message["event"]
        if not event.startswith("pusher"):
            data = message["data"]
            data = json.loads(data) if isinstance(data, str) else data
            self.process.log("F", self.user, data["n"], message.get("event_id", "-"), int(self.visible), time=now)
        elif event == "pusher:ping":
            if self.client == "js":
                self.say({"event": "pusher:pong", "data": {}})
        elif event == "pusher:connection_established":
            self.socket_id = json.loads(message["data"])["socket_id"]
            self.authorise("/pusher/auth", channel_name=self.channel)
            if self.signs_in:
                self.authorise("/pusher/user-auth")
        elif event == "pusher:error":
            self.process.log("X", self.user, json.dumps(message["data"]))

    def entered(self):
        self.phase = "subscribed"
        self.process.log("S", self.user, self.port)
        self.tell_state()

    def authorise(self, path, **form):
        generation = self.generation

        def answered(status, body):
            if generation != self.generation or self.socket is None:
                return
            if status != 200:
                if status:
                    self.process.log("X", self.user, f"{path} {status} {body[:200]!r}")
                return self.end("lost")
            self.auth[path] = json.loads(body)
            if len(self.auth) == (2 if self.signs_in else 1):
                self.enter()

        self.process.ask(wire.authorisation(path, self.token, socket_id=self.socket_id, **form), answered)

    def enter(self):
        if self.signs_in:
            self.say({"event": "pusher:signin", "data": self.auth["/pusher/user-auth"]})
        self.say({"event": "pusher:subscribe", "data": {"channel": self.channel, **self.auth["/pusher/auth"]}})

    def end(self, reason):
        if self.socket is not None:
            if not self.frozen:
                self.process.unregister(self.socket.fileno())
            self.socket.close()
            self.socket = None
        if self.phase == "subscribed":
            self.process.log("E", self.user, reason)
        self.phase = "off"
        if self.wanted and not self.frozen:
            self.process.after(self.process.random.uniform(*BACK_AFTER), self.come_back)

    def come_back(self):
        if self.wanted and self.phase == "off" and not self.frozen:
            self.connect()


class ClientProcess:
    def __init__(self, plan, log):
        self.ports, self.turn = plan["ports"], plan["seed"]
        self.random = random.Random(plan["seed"])
        self.epoll, self.handlers = select.epoll(), {}
        self.lines, self.file = [], open(log, "w", buffering=1 << 16)
        self.timers, self.timer_count = [], 0
        self.waiting, self.lanes = deque(), [Lane(self) for _ in range(LANES)]
        self.apps = []
        self.plan = plan
        for person in plan["people"]:
            app = App(self, person)
            self.apps.append(app)
            if person["connects"]:
                self.after(self.random.uniform(0, plan["spread"]), app.do_connect)

    def next_port(self):
        """Hubs in turn, as a balancer has them."""
        self.turn += 1
        return self.ports[self.turn % len(self.ports)]

    def log(self, kind, *values, time=None):
        self.lines.append("\t".join([kind, f"{time or now():.4f}", *map(str, values)]))

    def flush(self):
        if self.lines:
            self.file.write("\n".join(self.lines) + "\n")
            self.file.flush()
            self.lines = []

    def after(self, seconds, work):
        self.at(now() + seconds, work)

    def at(self, moment, work):
        self.timer_count += 1
        heapq.heappush(self.timers, (moment, self.timer_count, work))

    def register(self, descriptor, handler, mask=select.EPOLLIN):
        self.handlers[descriptor] = handler
        self.epoll.register(descriptor, mask)

    def change(self, descriptor, mask):
        if descriptor in self.handlers:
            self.epoll.modify(descriptor, mask)

    def unregister(self, descriptor):
        if self.handlers.pop(descriptor, None):
            self.epoll.unregister(descriptor)

    def ask(self, data, answered):
        self.waiting.append((data, answered))
        self.pump()

    def pump(self):
        for lane in self.lanes:
            if lane.current is None and self.waiting:
                lane.take(self.waiting.popleft())

    def go(self, start):
        for app, person in zip(self.apps, self.plan["people"]):
            for moment, action, *arguments in person["timeline"]:
                self.at(start + moment, lambda app=app, action=action, arguments=arguments: app.act(action, *arguments))

    def run(self):
        orders = sys.stdin.fileno()
        os.set_blocking(orders, False)
        self.epoll.register(orders, select.EPOLLIN)
        pending, last, flushed = b"", now(), now()
        while True:
            wait = min(0.1, max(0.0, self.timers[0][0] - now())) if self.timers else 0.1
            before = now()
            ready = self.epoll.poll(wait)
            woke = now()
            # Time in which this process wanted to run and did not: stopped, starved, or busy with itself.
            if woke - before - wait > STALL_SECONDS:
                self.log("L", f"{woke - before - wait:.3f}")
            elif before - last > STALL_SECONDS:
                self.log("L", f"{before - last:.3f}")
            last = woke
            for descriptor, mask in ready:
                if descriptor == orders:
                    chunk = os.read(orders, 4096)
                    if not chunk:
                        self.flush()
                        return
                    pending += chunk
                    while b"\n" in pending:
                        line, pending = pending.split(b"\n", 1)
                        self.go(float(line.split()[1]))
                elif descriptor in self.handlers:
                    self.handlers[descriptor].on_event(mask)
            while self.timers and self.timers[0][0] <= now():
                heapq.heappop(self.timers)[2]()
            if now() - flushed > 0.5:
                self.pump()
                self.flush()
                flushed = now()


def now():
    return time.time()


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        process = ClientProcess(json.load(file), sys.argv[2])
    try:
        process.run()
    except KeyboardInterrupt:
        pass
