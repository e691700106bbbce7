"""The fixtures: one server for most tests, the SDK pointed at it by its variables, each test with both halves of the SDK."""

import os
import uuid

# Nothing of the person who runs the tests may point the SDK elsewhere.
for name in [name for name in os.environ if name.startswith("E2B_") or name.lower().endswith("_proxy")]:
    del os.environ[name]

import pytest

import features
import mode
from halves import Half
from server import Server
from tenants import Tenant
from world import World

pytest_plugins = ["provider_option"]

# Long enough for any run of the suite.
LONG = 3600


def pytest_addoption(parser):
    parser.addoption("--domain", help="speak TLS to names below this domain, which must all lead to this host")


def pytest_configure(config):
    if domain := config.getoption("domain"):
        mode.current = mode.InDomain(domain)


def pytest_report_header():
    return f"not in this version of the SDK, and so not tested: {', '.join(features.MISSING) or 'nothing'}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Leaves out what the SDK in use does not have, and checks the coverage after the last test."""
    request_log = [(config.invocation_params.dir / argument).resolve() for argument in config.args]
    is_whole = request_log == [config.rootpath] and not (config.option.keyword or config.getoption("domain"))
    left_out = [item for item in items if not is_wanted(item, config.getoption("domain"), is_whole)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = sorted((item for item in items if item not in left_out), key=lambda item: "whole_run" in item.fixturenames)


def is_wanted(item, domain, is_whole):
    has_all = all(features.FEATURES[mark.args[0]] for mark in item.iter_markers("needs"))
    other_mode = "plain" if domain else "domain"
    return has_all and not item.get_closest_marker(other_mode) and (is_whole or "whole_run" not in item.fixturenames)


@pytest.fixture
def whole_run():
    """For what looks back at all tests: runs last, and only when nothing was left out."""


@pytest.fixture(scope="session")
def world():
    """Sites for sandboxes to reach, and the names that lead there."""
    with World() as world:
        yield world


@pytest.fixture(scope="session")
def server(world):
    """A server as `./run` starts it, without the quota, that may reach the sites of the tests."""
    with Server(*mode.current.flags, **world.settings) as server:
        yield server


@pytest.fixture(scope="session")
def key(server):
    """The key of an ordinary user."""
    return Tenant(server, "sdk-user").key


@pytest.fixture(scope="session")
def pointed(server, key):
    """The variables that point the SDK at the server."""
    variables = mode.current.variables(server, key)
    os.environ.update(variables)
    yield variables
    for name in variables:
        os.environ.pop(name, None)


@pytest.fixture(scope="session", params=["sync", "async"])
def half(request, pointed):
    """One half of the SDK."""
    half = Half(is_async=request.param == "async")
    yield half
    half.close()


@pytest.fixture(scope="session")
def sandbox(half):
    """One sandbox for all tests that do not get in each other's way."""
    sandbox = half.Sandbox.create(timeout=LONG)
    yield sandbox
    sandbox.kill()


@pytest.fixture(scope="session")
def other_user(server):
    """Another user of the same server."""
    return Tenant(server, "sdk-stranger")


@pytest.fixture
def make(half):
    """Makes sandboxes that are gone after the test."""
    created = []

    def make(*arguments, **options):
        created.append(half.Sandbox.create(*arguments, **options))
        return created[-1]

    yield make
    for sandbox in created:
        sandbox.kill()


@pytest.fixture
def fresh_sandbox(make):
    """A sandbox of the test's own."""
    return make()


@pytest.fixture
def folder(sandbox):
    """A new, empty directory of the shared sandbox, gone after the test."""
    path = f"/home/user/test-{uuid.uuid4().hex[:8]}"
    sandbox.files.make_dir(path)
    yield path
    sandbox.files.remove(path)


@pytest.fixture
def mark():
    """A text that is nowhere else."""
    return f"mark-{uuid.uuid4().hex[:12]}"
