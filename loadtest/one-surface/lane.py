"""A client process's way to the hub's HTTP API: keep-alive connections in its epoll loop."""

import socket

from common.http import take_answer

# Seconds without an answer after which an app gives a request up, as HTTP clients do. A stopped hub never answers.
ANSWER_SECONDS_MAX = 10


class Lane:
    """One keep-alive HTTP connection; one request at a time."""

    def __init__(self, process):
        self.process, self.socket, self.buffer, self.current = process, None, bytearray(), None

    def take(self, item):
        self.current = item
        self.process.after(ANSWER_SECONDS_MAX, lambda: self.too_slow(item))
        try:
            if self.socket is None:
                self.socket = socket.socket()
                self.socket.settimeout(2)
                self.socket.connect(("127.0.0.1", self.process.next_port()))
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.socket.setblocking(False)
                self.process.register(self.socket.fileno(), self)
            self.socket.sendall(item[0])
        except OSError:
            self.fail()

    def on_event(self, mask):
        try:
            chunk = self.socket.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            return self.fail()
        self.buffer += chunk
        answer = take_answer(self.buffer)
        if answer:
            item, self.current = self.current, None
            if item:
                item[1](*answer)
            self.process.pump()

    def too_slow(self, item):
        if self.current is item:
            self.fail()
            self.process.pump()

    def fail(self):
        if self.socket is not None:
            self.process.unregister(self.socket.fileno())
            self.socket.close()
            self.socket = None
        self.buffer.clear()
        item, self.current = self.current, None
        if item:
            item[1](0, b"")
