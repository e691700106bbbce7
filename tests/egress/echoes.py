"""A TCP server of this host that says everything back, for very many connections at once."""

import asyncio
import threading


class Echoes:
    def __init__(self, address, port):
        self.address, self.port = address, port
        self.open = 0
        self.limit = 0
        self._loop = asyncio.new_event_loop()
        self._is_up = threading.Event()

    def __enter__(self):
        threading.Thread(target=self._run, daemon=True).start()
        assert self._is_up.wait(60)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _run(self):
        async def start():
            await asyncio.start_server(self._serve, self.address, self.port, backlog=4096)
            self._is_up.set()

        self._loop.run_until_complete(start())
        self._loop.run_forever()

    async def _serve(self, reader, writer):
        self.open += 1
        self.limit = max(self.limit, self.open)
        try:
            while piece := await reader.read(65_536):
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass
        finally:
            self.open -= 1
            writer.close()
