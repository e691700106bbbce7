"""The sandbox's own variables, which the agent knows."""

import asyncio
import json
from urllib.parse import urlsplit

# The agent is on this machine. One that takes its time is as busy as everything else here, and code that runs without its
# variables does something else than was asked: only one that never answers is done without.
SECONDS = 10.0
MAX_REPLY = 4 * 1024 * 1024


class SandboxEnvironment:
    """Asks the agent for the variables that the sandbox was made with.

    A sandbox kept ready gets its variables only when somebody takes it, so they are asked for at every execution.
    """

    def __init__(self, agent: str, token: str | None):
        address = urlsplit(agent)
        self._host = address.hostname or "127.0.0.1"
        self._port = address.port or 80
        # Good for this question and for nothing else; the agent gives it to the start program.
        self._token = token
        self._variables: dict[str, str] = {}

    async def read(self) -> dict[str, str]:
        """The variables now, or as they were when the agent last told."""
        try:
            async with asyncio.timeout(SECONDS):
                self._variables = await self._ask()
        except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError):
            pass
        return self._variables

    async def _ask(self) -> dict[str, str]:
        reader, writer = await asyncio.open_connection(self._host, self._port, limit=MAX_REPLY)
        try:
            head = f"GET /envs HTTP/1.0\r\nHost: {self._host}:{self._port}\r\nConnection: close\r\n"
            if self._token:
                head += f"X-Access-Token: {self._token}\r\n"
            writer.write(head.encode("latin-1") + b"\r\n")
            reply = await reader.read(MAX_REPLY)
            while more := await reader.read(MAX_REPLY):
                reply += more
        finally:
            writer.close()
        first, _, body = reply.partition(b"\r\n\r\n")
        if first.split(b" ", 2)[1:2] != [b"200"]:
            raise ValueError("the agent does not tell")
        variables = json.loads(body)
        return {str(name): str(value) for name, value in variables.items()}
