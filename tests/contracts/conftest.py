"""The fixtures: one open server for most tests, one that always asks for credentials, and sandboxes of both."""

import pytest

from outside import Outside
from server import Server

pytest_plugins = ["own_sandboxes", "provider_option", "tenants"]


@pytest.fixture(scope="session")
def outside():
    """A web server of this host, which the servers are allowed to fetch from."""
    with Outside() as site:
        yield site


@pytest.fixture(scope="session")
def server(outside):
    """A server as `./run` starts it, without the quota; nothing is asked of callers on loopback."""
    with Server(LIMITS_SANDBOXES_PER_USER=0, SERVER_URL_HOSTS=outside.authority) as server:
        yield server


@pytest.fixture(scope="module")
def shared(api):
    """One sandbox for a whole file of tests that do not get in each other's way."""
    sandbox = api.create()
    yield sandbox
    api.remove(sandbox)
