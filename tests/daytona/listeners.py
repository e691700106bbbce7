"""Ports that can be had again after a restart."""

import asyncio

import backing  # noqa: F401 # It says where the harness is.
from ports import free_port

_ATTEMPTS = 600
_TIMEOUT = 0.1


async def listen(serve, port=None):
    """Awaits `serve(port)` until it succeeds; what it gave, and the port: the one asked for, or any."""
    for _ in range(_ATTEMPTS):
        # Below what the kernel hands out for outgoing connections, so that nobody takes one while this process is away.
        tried = port or free_port()
        try:
            return await serve(tried), tried
        except OSError as error:
            refused = error
            if port:
                await asyncio.sleep(_TIMEOUT)
    raise refused
