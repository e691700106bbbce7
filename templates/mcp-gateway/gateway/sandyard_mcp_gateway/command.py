"""`mcp-gateway --config JSON`: what the SDKs run as root after a create with `mcp=`.

Prepares the servers, starts the gateway in the background and ends when it answers, so that a client that waits for this command
finds the tools there. Every failure is one readable text on standard error: the SDKs show it.
"""

import argparse
import asyncio
import json
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

from . import catalog, checkout, serve

TOKEN_FILE = Path("/etc/mcp-gateway/.token")
LOG = Path("/var/log/mcp-gateway.log")
# How long all servers together may take to answer.
TIMEOUT = 120


def main():
    arguments = argparse.ArgumentParser(prog="mcp-gateway", description="Several MCP servers behind one address.")
    arguments.add_argument("--config", required=True, help="JSON object: a server's name to its settings")
    requested = arguments.parse_args()
    try:
        servers = {_plain(name): _launch(name, settings).entry() for name, settings in _read(requested.config).items()}
        token = os.environ.pop("GATEWAY_ACCESS_TOKEN", "") or secrets.token_hex(16)
        _keep(token)
        gateway = _start(servers, token)
        tools = _wait(gateway, token)
    except catalog.Unusable as error:
        sys.exit(f"mcp-gateway: {error}")
    print(f"{len(servers)} servers with {tools} tools at port {serve.PORT}")


def _read(text):
    try:
        config = json.loads(text)
    except ValueError as error:
        raise catalog.Unusable(f"the configuration is not JSON: {error}") from None
    if not isinstance(config, dict) or not all(isinstance(entry, dict) for entry in config.values()):
        raise catalog.Unusable("the configuration is an object of objects: a server's name to its settings")
    if not config:
        raise catalog.Unusable("the configuration names no server")
    return config


def _launch(name, settings):
    find = checkout.fetch if name.startswith(checkout.PREFIX) else catalog.find
    return find(name, settings)


def _plain(name):
    """Tools are called after their server, and a tool's name has no slashes."""
    return "".join(char if char.isalnum() or char in "-_" else "_" for char in name)


def _keep(token):
    """Where the SDKs look when they connect to a sandbox that somebody else made."""
    TOKEN_FILE.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(TOKEN_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(token)


def _start(servers, token):
    """Starts the gateway in a session of its own, so that it outlives this command."""
    with LOG.open("ab") as log:
        gateway = subprocess.Popen(
            [sys.executable, "-m", "sandyard_mcp_gateway.serve"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    gateway.stdin.write(json.dumps({"servers": servers, "token": token}).encode())
    gateway.stdin.close()
    return gateway


def _wait(gateway, token):
    """Waits until the servers have told their tools; gives how many there are."""
    deadline = time.monotonic() + TIMEOUT
    last = None
    while time.monotonic() < deadline:
        if gateway.poll() is not None:
            raise catalog.Unusable(f"the gateway ended with {gateway.returncode}: {_last_words()}")
        try:
            return asyncio.run(_count_tools(token))
        except Exception as error:  # Not there yet, or one of its servers is not.
            last = error
            time.sleep(0.05)
    gateway.kill()
    raise catalog.Unusable(f"no answer from the servers within {TIMEOUT} s: {last}\n{_last_words()}")


async def _count_tools(token):
    from fastmcp import Client
    from fastmcp.client.transports import StreamableHttpTransport

    url = f"http://127.0.0.1:{serve.PORT}/mcp"
    transport = StreamableHttpTransport(url, headers={"Authorization": f"Bearer {token}"})
    async with Client(transport) as client:
        return len(await client.list_tools())


def _last_words():
    try:
        return "\n".join(LOG.read_text(errors="replace").splitlines()[-5:])
    except OSError:
        return "it wrote nothing"


if __name__ == "__main__":
    main()
