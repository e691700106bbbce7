"""The fixtures: one open server for most tests, one that always asks for credentials, and sandboxes of both."""

import pytest

from web_server import WebServer
from server import Server

pytest_plugins = ["own_sandboxes", "provider_option", "tenants"]


@pytest.fixture(scope="session")
def web_server():
    """A web server of this host, which the servers are allowed to fetch from."""
    with WebServer() as site:
        yield site


@pytest.fixture(scope="session")
def server(web_server):
    """A server as `./run` starts it, without the quota; nothing is asked of callers on loopback."""
    with Server(LIMITS_SANDBOXES_PER_USER=0, SERVER_URL_HOSTS=web_server.authority) as server:
        yield server


@pytest.fixture(scope="module")
def shared(api):
    """One sandbox for a whole file of tests that do not get in each other's way."""
    sandbox = api.create()
    yield sandbox
    api.remove(sandbox)
