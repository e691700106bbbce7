"""The tools of a sandbox, by the official MCP client."""

import asyncio

import httpx2
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from loop_thread import LoopThread

PORT = 6060


class Tools:
    """A conversation with a sandbox's tool server. On a loop of its own: the browser of the tests has one in this thread."""

    def __init__(self, api, sandbox):
        reply = api.ok("POST", "/sandboxes/expose-port", {"sandbox_id": sandbox, "port": PORT})
        self._url, _, self._token = reply["signed_url"].partition("?sandyard_token=")
        self._loop = LoopThread()
        # What was told while the last tool ran.
        self.progress = []

    def call(self, name, timeout=400, **arguments):
        """Calls one tool; returns its result, which must not be a failure."""
        result = asyncio.run_coroutine_threadsafe(self._call(name, arguments, timeout), self._loop.loop).result(timeout)
        assert not result.is_error, text(result)
        return result

    async def _call(self, name, arguments, timeout):
        self.progress = []

        async def note(progress, total, message):
            self.progress.append(message)

        client = httpx2.AsyncClient(headers={"X-Sandyard-Token": self._token}, timeout=timeout, trust_env=False)
        async with client, streamable_http_client(self._url, http_client=client) as (read, write, *_):
            async with ClientSession(read, write) as session:
                await session.initialize()
                return await session.call_tool(name, arguments, progress_callback=note)

    def close(self):
        self._loop.close()


def text(result):
    """The words of a result."""
    return "\n".join(part.text for part in result.content if part.type == "text")
