"""The fixtures: a Docker daemon of the tests, a server with Docker and the embedded engine behind, and sandboxes of both."""

import pytest

from behind import Behind
from dockerd import Dockerd
from providers import docker_variables
from server import Server
from world import World

pytest_plugins = ["own_sandboxes"]


@pytest.fixture(scope="session")
def dockerd():
    with Dockerd() as dockerd:
        yield dockerd
        remaining = dockerd.api.remains()
        assert not any(remaining.values()), f"left behind: {remaining}"


@pytest.fixture(scope="session")
def docker(dockerd):
    """Docker itself, past every server."""
    return dockerd.api


@pytest.fixture(scope="session")
def world():
    """Sites for sandboxes to reach, and the names that lead there."""
    with World() as world:
        yield world


@pytest.fixture(scope="session")
def server(dockerd, world):
    """Sandboxes are containers unless they ask for the embedded engine."""
    variables = docker_variables(dockerd.host, SANDYARD_PROVIDERS="embedded")
    with Server("--ready", "0", variables=variables, **world.settings) as server:
        yield server


@pytest.fixture(scope="session")
def behind(api, docker):
    """What is behind a sandbox."""
    return Behind(api, docker)
