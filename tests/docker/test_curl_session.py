"""Seed 004's curl session makes a real container with the limits it asked for, and takes it away with everything it had."""

import json
import subprocess
from pathlib import Path

import pytest

CALLS = Path(__file__).parents[1] / "contracts" / "calls" / "seed_004.sh"
GIB = 1 << 30


class Session:
    """A shell that is given the script one call after the other, so that Docker can be inspected in between."""

    def __init__(self, url):
        blocks = CALLS.read_text().split("\n\n")
        self._rest = blocks[1:]
        self._shell = subprocess.Popen(
            ["sh", "-s", url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._shell.stdin.write(f"{blocks[0]}\n")

    def next(self):
        """Makes the next call; its answer."""
        self._shell.stdin.write(f"{self._rest.pop(0)}\n")
        self._shell.stdin.flush()
        return json.loads(self._shell.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._shell.stdin.close()
        response = self._shell.stdout.read()
        assert (self._shell.wait(120), response) == (0, "")


@pytest.fixture
def before(docker):
    return docker.remains()


def test_session_makes_a_container_and_takes_it_away(server, docker, behind, before):
    with Session(server.url) as session:
        created = session.next()
        assert "sandbox_id" in created, created
        assert (created["project_name"], created["status"], created["workspace_path"]) == ("test", "running", "/workspace")
        assert created["resource_limits"] == {"memory": "1g", "cpu": "1.0"}
        inspected = docker.container(created["container_id"])
        host = inspected["HostConfig"]
        assert inspected["State"]["Running"] is True
        assert (host["Memory"], host["NanoCpus"]) == (GIB, 1_000_000_000)
        volumes = behind.volumes(created["sandbox_id"])
        assert len(volumes) == 1 and set(volumes) <= set(docker.volumes())

        executed = session.next()
        assert executed["exit_code"] == 0 and executed["stdout"].startswith("v") and executed["stderr"] == ""

        entries = session.next()
        everything = entries["sandboxes"] if isinstance(entries, dict) else entries
        assert created["sandbox_id"] in [one["sandbox_id"] for one in everything]

        deleted = session.next()
        assert deleted["success"] is True and deleted["message"]
    assert docker.remains() == before, "no container, no volume and no network is left"
