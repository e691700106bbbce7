"""Web applications in sandboxes, opened in a browser by the link that `sandyard ports open` prints."""

import os
import subprocess
from pathlib import Path

import pytest

from chromium import Chromium
from program import environment, find_program
from server import Server

APPS = Path(__file__).parent
DOMAIN = "apps.test"


@pytest.fixture(scope="module", params=["localhost", DOMAIN])
def server(request):
    """A server that asks everybody for credentials, so that the link is all that opens a page; with and without a domain."""
    settings = {} if request.param == "localhost" else {"DOMAIN": DOMAIN}
    with Server("--auth", "required", **settings) as server:
        server.domain = request.param
        yield server


@pytest.fixture(scope="module")
def api(server):
    api = server.admin()
    yield api
    api.close()


@pytest.fixture(scope="module")
def chromium():
    with Chromium(f"*.{DOMAIN}") as chromium:
        yield chromium


@pytest.fixture
def sandyard(server):
    """Runs a command of the command line and returns what it prints."""

    def sandyard(*arguments):
        command = [find_program(), "--data-dir", server.data.path, "--url", server.url, *arguments]
        variables = environment(SANDYARD_API_KEY=server.admin_key)
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return sandyard


@pytest.fixture
def make_app(api, sandyard):
    """Copies an application into a sandbox, with packages of npm that it needs, and starts it: `make_app(name, command, packages)`."""
    created = []

    def make_app(name, command, packages=False, **variables):
        sandbox = api.create(env=variables)
        created.append(sandbox)
        sandyard("cp", "--quiet", APPS / name, f"{sandbox}:app")
        if packages:
            sandyard("cp", "--quiet", os.environ["WEB_APPS_NODE_MODULES"], f"{sandbox}:app/node_modules")
        api.run(sandbox, f"cd ~/app && exec {command}", background=True)
        return sandbox

    yield make_app
    for sandbox in created:
        api.remove(sandbox)


@pytest.fixture
def open_app(server, chromium, sandyard):
    """Opens a port of a sandbox by its link, and expects in the end that nothing failed in the page."""
    pages = []

    def open_app(sandbox, port):
        link = sandyard("ports", "open", sandbox, str(port))
        assert link.startswith(f"http://{port}-{sandbox}.{server.domain}:{server.port}/"), link
        page = chromium.open(link, is_watched=True)
        pages.append(page)
        assert "sandyard_token" not in page.url
        return page

    yield open_app
    for page in pages:
        failures = page.failures()
        page.close()
        assert failures == []
