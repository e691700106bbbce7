"""A server with the template of the code interpreter, which $TEMPLATE names, and both halves of the SDK pointed at it."""

import asyncio
import inspect
import os
import subprocess

import e2b_code_interpreter
import pytest

from loop_thread import LoopThread
from program import environment, find_program
from server import Server


@pytest.fixture(scope="session")
def server():
    with Server(AUTH_MODE="required") as server:
        command = [find_program(), "--data-dir", server.data.path, "--url", server.url, "template", "import"]
        done = subprocess.run(
            [*command, "code-interpreter-v1", os.environ["TEMPLATE"]],
            env=environment(SANDYARD_API_KEY=server.admin_key), capture_output=True, text=True, timeout=800,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        yield server


@pytest.fixture(scope="session")
def variables(server):
    return {"E2B_API_KEY": server.admin_key, "E2B_API_URL": server.e2b_url, "E2B_SANDBOX_URL": server.e2b_url}


class Half:
    """One half of the SDK, called as if it were synchronous."""

    def __init__(self, is_async):
        self._class = e2b_code_interpreter.AsyncSandbox if is_async else e2b_code_interpreter.Sandbox
        self._loop = LoopThread() if is_async else None

    def create(self, **options):
        # It outlives all tests, however long they take.
        return Sandbox(self, self.run(self._class.create, timeout=3600, request_timeout=300, **options))

    def run(self, function, *arguments, **options):
        if self._loop is None:
            return function(*arguments, **options)

        async def on_the_loop():
            value = function(*arguments, **options)
            return await value if inspect.isawaitable(value) else value

        return asyncio.run_coroutine_threadsafe(on_the_loop(), self._loop.loop).result(400)

    def close(self):
        if self._loop is not None:
            self._loop.close()


class Sandbox:
    """A sandbox of either half."""

    def __init__(self, half, sandbox):
        self._half, self._sandbox = half, sandbox

    def __getattr__(self, name):
        value = getattr(self._sandbox, name)
        if name in ("files", "commands"):
            return Sandbox(self._half, value)
        return (lambda *args, **options: self._half.run(value, *args, **options)) if callable(value) else value


@pytest.fixture(scope="session", params=["sync", "async"])
def half(request, variables):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        half = Half(request.param == "async")
        yield half
        half.close()


@pytest.fixture(scope="session")
def shared(half):
    """A sandbox that tests share which leave it as it was."""
    sandbox = half.create(envs={"GIVEN": "at create"})
    yield sandbox
    sandbox.kill()
