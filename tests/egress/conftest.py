"""The fixtures: a world on loopback, a server that may reach it, and sandboxes of that server."""

import pytest

from guest import Guest
from server import Server
from world import World


@pytest.fixture(scope="session")
def world():
    with World() as world:
        yield world


@pytest.fixture(scope="session")
def server(world):
    """A server that asks the name server of the tests and may reach their sites."""
    with Server(**world.settings) as server:
        yield server


@pytest.fixture(scope="session")
def api(server):
    api = server.api()
    yield api
    api.close()


@pytest.fixture
def make(api, world):
    """Makes sandboxes that are gone after the test."""
    created = []

    def make(**body):
        created.append(Guest(api, world, **body))
        return created[-1]

    yield make
    for guest in created:
        guest.remove()


# Nothing but one name, as E2B's clients write it.
def only(*targets):
    return {"allow_out": list(targets), "deny_out": ["0.0.0.0/0"]}


@pytest.fixture(scope="module")
def shut(api, world):
    """A sandbox that may reach good.test and nothing else, for a whole file of tests."""
    with Guest(api, world, network=only("good.test")) as guest:
        yield guest


@pytest.fixture(scope="module")
def wide(api, world):
    """A sandbox with the policy it gets when nobody says anything, for a whole file of tests."""
    with Guest(api, world) as guest:
        yield guest


@pytest.fixture
def nothing_escapes(world):
    """Fails a test after which anything has come where nothing may come."""
    before = len(world.escaped())
    yield
    assert world.escaped()[before:] == []
