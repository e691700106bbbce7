"""The fixtures: a server whose sandboxes are in a cloud, once for each cloud, and sandboxes of it."""

import shutil
import subprocess

import pytest

from clients import Guest
from clouds import CLOUDS, TOOLS_PORT
from program import find_program
from server import Server


@pytest.fixture(scope="session")
def lean(tmp_path_factory):
    """The program without what only a debugger wants: it is brought into sandboxes."""
    lean = tmp_path_factory.mktemp("program") / "sandyard"
    shutil.copy(find_program(), lean)
    subprocess.run(["strip", str(lean)], check=True)
    return lean


@pytest.fixture(scope="module", params=sorted(CLOUDS))
def server(request, lean):
    """A server that asks everybody for credentials."""
    with CLOUDS[request.param]() as variables:
        variables = {**variables, "SANDBOX_PROVIDER": request.param, "MCP_PORT": str(TOOLS_PORT)}
        with Server("--auth", "required", variables=variables, SANDBOX_AGENT_PROGRAM=lean) as server:
            yield server


@pytest.fixture(scope="module")
def api(server):
    api = server.admin()
    yield api
    api.close()


@pytest.fixture(scope="module")
def guest(server, api):
    """A sandbox for all tests that leave its tool server as it is."""
    guest = Guest(server, api)
    yield guest
    guest.remove()


@pytest.fixture
def fresh(server, api):
    """One for a test alone."""
    guest = Guest(server, api)
    yield guest
    guest.remove()
