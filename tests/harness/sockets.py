"""A WebSocket for tests that wait.

Over the asynchronous half of the library: its synchronous half may drop what came just before the other side's close.
"""

import asyncio

from websockets.asyncio.client import connect

# Nothing is measured by it.
_TIMEOUT = 120


class Socket:
    """A connection to the host a URL names; `server` is the address it is really at, if that is another one."""

    def __init__(self, url, server=None, **options):
        self._loop = asyncio.new_event_loop()
        if server:
            options.update(host=server[0], port=server[1])
        try:
            self._socket = self._wait(self._connect(url, options))
        except BaseException:
            self._loop.close()
            raise

    async def _connect(self, url, options):
        return await connect(url, proxy=None, ping_interval=None, open_timeout=_TIMEOUT, **options)

    def _wait(self, work):
        return self._loop.run_until_complete(asyncio.wait_for(work, _TIMEOUT))

    def send(self, message):
        self._wait(self._socket.send(message))

    def recv(self):
        return self._wait(self._socket.recv())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._wait(self._socket.close())
        self._loop.close()
