"""The fixtures: one server for the whole run, and the official SDK that talks to it."""

import os

# Set before the SDK is imported: no control plane.
os.environ["E2B_DEBUG"] = "true"
for name in ("E2B_API_URL", "E2B_DOMAIN", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
    os.environ.pop(name, None)

import httpx
import pytest
from e2b_code_interpreter import Sandbox
from interpreter import Interpreter


@pytest.fixture(scope="session")
def server():
    interpreter = Interpreter()
    yield interpreter
    interpreter.close()


@pytest.fixture
def own_server():
    """A server for tests that leave one changed."""
    interpreter = Interpreter()
    yield interpreter
    interpreter.close()


@pytest.fixture
def sandbox(server):
    """The SDK's sandbox, with the server where it expects port 49999."""
    return sandbox_at(server)


def sandbox_at(interpreter):
    os.environ["E2B_SANDBOX_URL"] = interpreter.url
    return Sandbox.create()


@pytest.fixture
def context(sandbox):
    """A Python context of the test's own."""
    created = sandbox.create_code_context()
    yield created
    sandbox.remove_code_context(created)


@pytest.fixture
def http(server):
    with httpx.Client(base_url=server.url, timeout=120, trust_env=False) as client:
        yield client
