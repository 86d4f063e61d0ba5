"""Passes bytes on to a port of 127.0.0.1, each after some milliseconds: slow_way.py PORT MILLISECONDS. Does not narrow the way."""

import asyncio
import sys


async def carry(reader, writer, seconds):
    """Every piece leaves so long after it came; pieces that follow it do not wait for it."""
    pieces, loop = asyncio.Queue(), asyncio.get_running_loop()

    async def read():
        while data := await reader.read(262_144):
            pieces.put_nowait((loop.time() + seconds, data))
        pieces.put_nowait((0, b""))

    task = asyncio.create_task(read())
    try:
        while True:
            due, data = await pieces.get()
            if not data:
                break
            if (left := due - loop.time()) > 0:
                await asyncio.sleep(left)
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        task.cancel()
        writer.close()


async def main():
    port, seconds = int(sys.argv[1]), float(sys.argv[2]) / 1000

    async def serve(reader, writer):
        there = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(carry(reader, there[1], seconds), carry(there[0], writer, seconds), return_exceptions=True)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(f"ready at {server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


asyncio.run(main())
