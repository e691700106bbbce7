"""Descriptors from inside whose close takes as long as the sandbox likes: nobody else notices."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

import processes
from server import Server
from waiting import wait_for

# How long the attack would hold the server up, and how long an honest request may take; far apart, so that only one of them ends.
_LINGER, _TIMEOUT = 1200, 90.0
# More than the server has threads, for requests and for the gateway.
_MANY = 4 * (os.cpu_count() or 1) + 8


@pytest.fixture
def guarded():
    """A server of this test's own, which is killed in it."""
    with Server("--auth", "required") as server:
        yield server


def test_a_passed_descriptor_that_lingers_delays_no_other_sandbox(guarded, compiled, tmp_path):
    admin = guarded.admin()
    alice, bob = (_user(guarded, admin, name) for name in ("alice", "bob"))
    sandbox = alice.create()
    program = compiled("lingering_reply")
    files = {"file": ("attack", program.read_bytes())}
    reply = alice.post("/sandboxes/upload-file", data={"sandbox_id": sandbox, "file_path": "/tmp/attack"}, files=files)
    assert reply.status_code == 200, reply.text
    alice.run(sandbox, f"sudo chmod 755 /tmp/attack; sudo setsid /tmp/attack {_LINGER} {_LINGER} >/dev/null 2>&1 &")
    attack = wait_for(_attack, "the attack begins")

    def ask_until_answered(count):
        """The server connects to the agent, in whose place the attack answers."""
        while _answered(attack) < count:
            try:
                alice.post("/sandboxes/run-command", {"sandbox_id": sandbox, "command": "true", "timeout": 5}, timeout=10)
            except httpx.HTTPError:
                pass

    def assert_others_are_served(count):
        with ThreadPoolExecutor(_MANY) as pool:
            asking = [pool.submit(ask_until_answered, count) for _ in range(_MANY)]
            try:
                while not all(one.done() for one in asking):
                    _assert_served(bob)
            except BaseException:
                processes.end(attack, 0.1)
                raise
            for one in asking:
                one.result()
        _assert_served(bob)
        assert processes.is_alive(attack)

    assert_others_are_served(_MANY)
    # The next server meets it from the first moment on.
    guarded.kill()
    guarded.start()
    assert_others_are_served(_answered(attack) + _MANY)
    processes.end(attack)


def test_programs_cannot_make_a_socket_linger_and_do_not_notice(api, sandbox, compiled, put):
    path = put(sandbox, compiled("linger_is_ignored"))
    assert api.run(sandbox, path)["stdout"] == "set 0, get 0, on 0\n"


def _user(server, admin, name):
    admin.ok("POST", "/users", {"name": name, "password": f"Right-{name}-1!", "role": "user"})
    return server.api(admin.ok("POST", "/keys", {"name": "test", "user": name})["key"])


def _assert_served(api):
    for path in ("/health", "/sandboxes"):
        reply = api.get(path, timeout=_TIMEOUT)
        assert reply.status_code == 200, reply.text


def _attack():
    """The attack, by this host's number: its thread has the name that the program gives it."""
    return next((pid for pid in processes.with_argument("/tmp/attack") if _name(pid).startswith("answered-")), None)


def _answered(pid):
    return int(_name(pid).rpartition("-")[2])


def _name(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
