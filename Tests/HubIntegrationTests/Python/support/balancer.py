"""A balancer on 127.0.0.1 that gives each new connection to the next of several servers."""

import asyncio
import itertools


class Balancer:
    """Passes connections on, in turns. A server that refuses a connection is passed over."""

    def __init__(self, ports):
        self._count = len(ports)
        self._turns = itertools.cycle(ports)
        # The event loop itself refers to its tasks weakly.
        self._tasks = set()

    async def start(self, port=0):
        """Listens on the port; 0: a free one, then `port` says which."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def close(self):
        self._server.close()

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        for _ in range(self._count):
            try:
                there = await asyncio.open_connection("127.0.0.1", next(self._turns))
                break
            except OSError:
                continue
        else:
            return writer.transport.abort()
        await asyncio.gather(self._carry(reader, there[1]), self._carry(there[0], writer), return_exceptions=True)

    async def _carry(self, reader, writer):
        """An end is passed on as it came: a reset, or the end of one direction."""
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
            writer.write_eof()
        except (OSError, RuntimeError):
            writer.transport.abort()
