"""Attacks from inside a sandbox, or with a valid key: each test is one finding that must stay closed."""

import subprocess
from pathlib import Path

import pytest

from server import Server

pytest_plugins = ["own_sandboxes", "tenants"]

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="session")
def server():
    """A server as `./run` starts it, without the quota."""
    with Server(LIMITS_SANDBOXES_PER_USER=0) as server:
        yield server


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """Compiles a C program of `programs/` into one static file: `compiled("linger")`; options of the linker may follow."""
    folder = tmp_path_factory.mktemp("programs")

    def compiled(name, *libraries):
        program = folder / name
        if not program.exists():
            source = PROGRAMS / f"{name}.c"
            subprocess.run(["gcc", "-O1", "-Wall", "-static", "-o", program, source, *libraries], check=True)
        return program

    return compiled


@pytest.fixture
def put(api):
    """Puts a program of this host into a sandbox, executable for everybody there: `put(sandbox, program)` returns its path inside."""

    def put(sandbox, program):
        path = f"/tmp/{Path(program).name}"
        files = {"file": (Path(program).name, Path(program).read_bytes())}
        reply = api.post("/sandboxes/upload-file", data={"sandbox_id": sandbox, "file_path": path}, files=files)
        assert reply.status_code == 200, reply.text
        api.run(sandbox, f"sudo chmod 755 {path}")
        return path

    return put
