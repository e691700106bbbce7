"""The fixtures: one agent for the whole run, and each test twice, with the SDK's synchronous and asynchronous half."""

import os
import tempfile
import uuid
from pathlib import Path

# Set before the SDK is imported: no control plane, the agent answers on localhost:49983.
os.environ["E2B_DEBUG"] = "true"
for name in ("E2B_API_URL", "E2B_SANDBOX_URL", "E2B_DOMAIN", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
    os.environ.pop(name, None)

import own_network

# Before anything is started. Without root the agent says that it cannot run.
if os.geteuid() == 0:
    own_network.enter()

import pytest
from e2b import AsyncSandbox, Sandbox

from agent_process import AgentProcess
from both_kinds import Blocking
from loop_thread import LoopThread


def private_directory():
    """A new directory on the checkout's disk: a tmpfs has no extended attributes on older kernels."""
    parent = Path(__file__).resolve().parents[2] / "target" / "sdk-tests"
    parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(dir=parent))


@pytest.fixture(scope="session")
def agent():
    try:
        process = AgentProcess(private_directory(), 49983)
    except (RuntimeError, AssertionError) as error:
        pytest.exit(f"cannot start the agent: {error}", returncode=1)
    yield process
    process.stop()


@pytest.fixture(params=["sync", "async"])
def sandbox(request, agent):
    """The SDK's sandbox. `kill` does nothing in debug mode, so tests end what they start."""
    if request.param == "sync":
        yield Sandbox.create()
        return
    thread = LoopThread()
    try:
        yield Blocking(AsyncSandbox, thread.loop).create()
    finally:
        thread.close()


@pytest.fixture
def folder(sandbox):
    """A new, empty directory inside, gone after the test."""
    path = f"/home/user/test-{uuid.uuid4().hex[:8]}"
    sandbox.files.make_dir(path)
    yield path
    sandbox.files.remove(path)
