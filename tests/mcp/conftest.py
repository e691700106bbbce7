"""The fixtures: one server that asks everybody for credentials, one sandbox of it, and the official clients on the way there."""

import pytest

from client import ToolEndpoint
from server import Server


@pytest.fixture(scope="session")
def server():
    with Server("--auth", "required", LIMITS_SANDBOXES_PER_USER=0) as server:
        yield server


@pytest.fixture(scope="session")
def api(server):
    api = server.admin()
    yield api
    api.close()


@pytest.fixture(scope="session")
def sandbox(api):
    """One for all tests that only add to it."""
    sandbox = api.create()
    yield sandbox
    api.remove(sandbox)


@pytest.fixture
def fresh(api):
    """One for a test alone."""
    sandbox = api.create()
    yield sandbox
    api.remove(sandbox)


@pytest.fixture(scope="session")
def endpoint(server, api, sandbox):
    """The way to the sandbox's tools, as the server told it."""
    return ToolEndpoint.to(api, server, sandbox)


@pytest.fixture(scope="session")
def control(server):
    """The way to the server's own tools."""
    return ToolEndpoint(f"{server.url}/mcp", server.admin_key)


@pytest.fixture(scope="session")
def open_mcp_url():
    """A server without credentials, for clients that cannot send any: open on loopback, as `./run` starts it."""
    with Server() as server:
        api = server.api()
        sandbox = api.create()
        yield api.ok("GET", f"/sandboxes/{sandbox}/urls")["mcp_url"]
        api.remove(sandbox)
        api.close()
