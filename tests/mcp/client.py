"""A client of the official Python SDK with the headers that a server wants, run to its end from ordinary tests."""

import asyncio
import secrets
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client


@dataclass(frozen=True)
class ToolEndpoint:
    """Where a tool server is, and what to show there."""

    url: str
    key: str

    @classmethod
    def to(cls, api, server, sandbox):
        return cls(api.ok("GET", f"/sandboxes/{sandbox}/urls")["mcp_url"], server.admin_key)

    @property
    def headers(self):
        return {"Authorization": f"Bearer {self.key}"}

    @property
    def base(self):
        """Without the last part."""
        return self.url.rstrip("/").removesuffix("/mcp")

    @asynccontextmanager
    async def session(self, on_reply=None, **options):
        """A session that has shaken hands. `on_reply` gets each answer."""
        hooks = {"response": [on_reply] if on_reply else []}
        async with (
            httpx2.AsyncClient(headers=self.headers, timeout=300, event_hooks=hooks) as http,
            streamable_http_client(self.url, http_client=http) as streams,
            ClientSession(streams[0], streams[1], **options) as session,
        ):
            await session.initialize()
            yield session

    def call(self, tool, /, **arguments):
        """Calls one tool in a session of its own, and returns its result; one that failed is an error."""
        result = self.call_any(tool, **arguments)
        assert not result.is_error, text(result)
        return result

    def call_any(self, tool, /, **arguments):
        """The same, but failures are returned too."""

        async def call():
            async with self.session() as session:
                return await session.call_tool(tool, arguments)

        return asyncio.run(call())

    def fails(self, tool, /, **arguments):
        """The words of a call that must fail."""
        result = self.call_any(tool, **arguments)
        assert result.is_error, f"{tool} did not fail: {text(result)}"
        return text(result)


class Hearer:
    """Hears the progress of a command that tells its steps, and lets it end when one of them was heard."""

    def __init__(self, api, sandbox):
        self._api, self._sandbox = api, sandbox
        self._received = f"/tmp/heard-{secrets.token_hex(8)}"
        self.outcome = []

    @property
    def command(self):
        # However slow a busy machine is to tell what it does, it does not end before.
        return f"for i in 1 2 3 4; do echo step $i; sleep 1; done; until [ -e {self._received} ]; do sleep 0.1; done"

    async def note(self, progress, total, message):
        """The callback of a call."""
        self.outcome.append((progress, message))
        if "step" in (message or ""):
            await asyncio.to_thread(self._api.run, self._sandbox, f"touch {self._received}")


def listens(api, sandbox, port):
    """Whether somebody inside answers on a port of the sandbox."""
    return api.run(sandbox, f"curl -s -o /dev/null http://127.0.0.1:{port}/")["exit_code"] == 0


def text(result):
    """All the text of a result."""
    return "\n".join(part.text for part in result.content if part.type == "text")


def images(result):
    return [part for part in result.content if part.type == "image"]
