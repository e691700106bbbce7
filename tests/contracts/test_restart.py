"""What survives the server: sandboxes, files, processes, timers."""

import time

import pytest

from server import Server
from waiting import wait_for

# More than a timer is kept for a server that began with it and died.
TIMEOUT = 150


def paused(api, sandbox):
    return lambda: api.status(sandbox) == "paused"


@pytest.fixture
def own_server():
    """A server that may be killed."""
    with Server("--ready", "0") as server:
        yield server


def test_state_files_and_processes_survive_kill_9(own_server):
    api = own_server.api()
    running, frozen, removed = api.create(), api.create(), api.create()
    api.write(running, "/home/user/kept", "kept")
    pid = api.run(running, "while :; do echo x >> /tmp/ticks; sleep 0.05; done", background=True)["process_id"]
    api.pause(frozen)
    api.remove(removed)
    before = api.info(running)
    own_server.kill()
    print(f"the server answered {own_server.start():.2f} s after its start")
    assert {one["sandbox_id"]: one["status"] for one in api.all()} == {running: "running", frozen: "paused"}
    after = api.info(running)
    assert (after["user_id"], after["started_at"]) == (before["user_id"], before["started_at"])
    assert api.read(running, "/home/user/kept") == "kept"
    assert api.run(running, f"kill -0 {pid} && echo alive")["output"] == "alive\n"
    size = int(api.run(running, "stat -c %s /tmp/ticks")["stdout"])
    wait_for(lambda: int(api.run(running, "stat -c %s /tmp/ticks")["stdout"]) > size, "it still counts")
    assert api.run(frozen, "echo thawed")["output"] == "thawed\n"
    api.close()


def test_timers_survive_kill_9_and_the_first_sweep_is_at_the_start(own_server):
    api = own_server.api()
    due_soon, due_while_down = api.create(timeout=6), api.create(timeout=1)
    own_server.kill()
    ended = time.time() + 1
    wait_for(lambda: time.time() > ended, "its time passes while no server runs")
    own_server.start()
    wait_for(paused(api, due_while_down), "what came due meanwhile is done at the start", TIMEOUT)
    wait_for(paused(api, due_soon), "a timer of the killed server fires", TIMEOUT)
    for sandbox in (due_soon, due_while_down):
        assert len(api.events(sandbox, "paused")) == 1
    api.close()


def test_a_graceful_end_leaves_sandboxes_running(provider, own_server):
    api = own_server.api()
    sandbox = api.create()
    pid = api.run(sandbox, "sleep 1000", background=True)["process_id"]
    instance = api.info(sandbox)["provider_sandbox_id"]
    assert own_server.stop() == 0
    assert [one["state"] for one in provider.instances(own_server) if one["id"] == instance] == ["running"]
    own_server.start()
    assert api.run(sandbox, f"kill -0 {pid} && echo alive")["output"] == "alive\n"
    api.close()
