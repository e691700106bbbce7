"""A server of the official Python SDK over the older transport: `older_server.py PORT`. It wants the header `X-Key: right`."""

import os
import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("older")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
async def steps(context: Context) -> str:
    """Tells three steps."""
    for step in range(1, 4):
        await context.report_progress(step, 3, f"step {step}")
    return "done"


@server.tool()
def die() -> str:
    """Ends the server in the middle of a call."""
    os._exit(9)


def guarded(app):
    """Lets nobody in without the key."""

    async def guard(scope, receive, send):
        if scope["type"] == "http" and (b"x-key", b"right") not in scope["headers"]:
            await send({"type": "http.response.start", "status": 401, "headers": []})
            return await send({"type": "http.response.body", "body": b"no"})
        return await app(scope, receive, send)

    return guard


if __name__ == "__main__":
    app = server.sse_app(sse_path="/events/sse", message_path="/events/messages/")
    uvicorn.run(guarded(app), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
