"""The gateway itself: all servers behind one address, for clients with the token."""

import asyncio
import hmac
import json
import os
import sys
from contextlib import AsyncExitStack

import uvicorn
from fastmcp import Client, FastMCP
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy
from starlette.responses import JSONResponse

PORT = 50005


class TokenOnly:
    """Requires the token. In front of everything, so that requests without it are not parsed."""

    def __init__(self, app, token):
        self._app, self._expected = app, f"Bearer {token}".encode()

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and not self._is_known(scope["headers"]):
            refusal = JSONResponse(
                {"error": "the gateway's token is missing or wrong: send `Authorization: Bearer <token>`"},
                status_code=401,
                headers={"WWW-Authenticate": "Bearer"},
            )
            return await refusal(scope, receive, send)
        return await self._app(scope, receive, send)

    def _is_known(self, headers):
        displayed = [value for name, value in headers if name == b"authorization"]
        return len(displayed) == 1 and hmac.compare_digest(displayed[0], self._expected)


def main():
    """Serves what standard input describes, until it is ended. The token comes the same way: arguments can be seen by all."""
    described = json.load(sys.stdin)
    os.close(sys.stdin.fileno())
    asyncio.run(serve(described["servers"], described["token"]))


async def serve(servers, token):
    """Keeps one connection to each server for as long as the gateway lives; one that does not answer ends it."""
    gateway = FastMCP("mcp-gateway")
    async with AsyncExitStack() as stack:
        for name, entry in servers.items():
            transport = StdioTransport(**entry)
            try:
                client = await stack.enter_async_context(Client(transport, mode="auto"))
            except Exception as error:
                sys.exit(f"server `{name}` does not answer: {error}")
            # Under its own names, as its documentation calls them.
            gateway.mount(create_proxy(client, name=name))
        # Any host name is accepted with the token: previews have a separate host for every sandbox.
        app = gateway.http_app(path="/mcp", host_origin_protection=False)
        config = uvicorn.Config(TokenOnly(app, token), host="0.0.0.0", port=PORT, log_level="warning", lifespan="on")
        await uvicorn.Server(config).serve()


if __name__ == "__main__":
    main()
