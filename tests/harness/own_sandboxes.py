"""A caller without credentials and sandboxes that are deleted after a test; a plugin of suites with a fixture `server`."""

import pytest


@pytest.fixture(scope="session")
def api(server):
    """A caller on this host, without credentials."""
    api = server.api()
    yield api
    api.close()


@pytest.fixture
def make(api):
    """Makes sandboxes that are deleted after the test."""
    created = []

    def make(**body):
        created.append(api.create(**body))
        return created[-1]

    yield make
    for sandbox in created:
        api.remove(sandbox)


@pytest.fixture
def sandbox(make):
    """One sandbox, deleted after the test."""
    return make()
