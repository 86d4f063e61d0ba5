"""A way to a server that can go wrong."""

import asyncio

UP, DOWN = "to the server", "from the server"


class Link:
    """Passes connections on to a server on this machine.

    What is held back comes later, as TCP repeats what was lost on the way. A connection that was opened meanwhile says nothing.
    """

    def __init__(self, port):
        self._target = port
        self._passes = {UP: asyncio.Event(), DOWN: asyncio.Event()}
        self._connections, self._tasks = set(), set()
        # Seconds that bytes take in each direction.
        self.delay = 0.0
        # Whether the server's machine answers nobody.
        self.is_closed = False
        self.mend()

    async def start(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def cut(self, *ways):
        """Holds everything back in these directions, or in both."""
        for way in ways or (UP, DOWN):
            self._passes[way].clear()

    def mend(self):
        for passes in self._passes.values():
            passes.set()

    def drop(self):
        """Resets every connection."""
        for writer in self._connections:
            writer.transport.abort()

    def close(self):
        """Resets every connection, and every new one, until `open`."""
        self.is_closed = True
        self.drop()

    def open(self):
        self.is_closed = False

    def lead(self, port):
        """From now on there is another server at the end."""
        self._target = port
        self.drop()

    async def end(self):
        self._server.close()
        self.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader, writer):
        if self.is_closed:
            return writer.transport.abort()
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            return writer.transport.abort()
        both = {writer, far_writer}
        self._connections |= both
        # The loop alone would not keep it.
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            await asyncio.gather(self._carry(reader, far_writer, UP), self._carry(far_reader, writer, DOWN), return_exceptions=True)
        except asyncio.CancelledError:
            pass
        finally:
            self._connections -= both
            self._tasks.discard(task)
            for one in both:
                one.transport.abort()

    async def _carry(self, reader, writer, way):
        queue, loop = asyncio.Queue(), asyncio.get_running_loop()

        async def read():
            data = b"-"
            while data:
                try:
                    data = await reader.read(65_536)
                except OSError:
                    data = b""
                queue.put_nowait((loop.time() + self.delay, data))

        reading = asyncio.ensure_future(read())
        try:
            while True:
                due, data = await queue.get()
                if due > loop.time():
                    await asyncio.sleep(due - loop.time())
                await self._passes[way].wait()
                if not data:
                    return writer.write_eof()
                writer.write(data)
        except (OSError, RuntimeError):
            writer.transport.abort()
        finally:
            reading.cancel()
