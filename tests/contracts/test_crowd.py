"""Many sandboxes side by side, and one among them that is stuck."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from api import stopwatch
from waiting import wait_for


@pytest.mark.timeout(600)
def test_a_hundred_and_fifty_sandboxes_each_have_every_port(api):
    small = {"memory_limit": "64m"}
    created = []
    try:
        with ThreadPoolExecutor(8) as pool:
            created = list(pool.map(lambda n: api.create(user_id=f"crowd-{n}", **small), range(150)))
            urls = list(pool.map(lambda sandbox: expose(api, sandbox), created))
            assert len(set(urls)) == 150
            outputs = list(pool.map(lambda sandbox: api.run(sandbox, "echo $HOSTNAME-ok")["exit_code"], created[::10]))
            assert set(outputs) == {0}
    finally:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(api.remove, created))


def expose(api, sandbox):
    return api.ok("POST", "/sandboxes/expose-port", {"sandbox_id": sandbox, "port": 3000})["url"]


def first_process(provider, server, instance):
    return next(one["pid"] for one in provider.instances(server) if one["id"] == instance)


def test_one_stuck_sandbox_blocks_no_other(provider, server, api, make):
    stuck, others = make(), [make() for _ in range(3)]
    first = first_process(provider, server, api.info(stuck)["provider_sandbox_id"])
    os.kill(first, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(8) as pool:
            waiting = [
                pool.submit(api.post, "/sandboxes/run-command", {"sandbox_id": stuck, "command": "true", "timeout": 2})
                for _ in range(4)
            ]
            elapsed = stopwatch()
            for other in others:
                assert api.run(other, "echo free")["output"] == "free\n"
                assert api.pause(other)["status"] == "paused"
                assert api.read(other, "/etc/hostname")
            assert api.status(make()) == "running"
            # One that is very busy may say for a moment that it is not well.
            wait_for(lambda: api.get("/health").status_code == 200, "the server is well")
            print(f"beside a stuck sandbox: {elapsed():.2f} s")
            os.kill(first, signal.SIGCONT)
            assert all(future.result().status_code in (200, 408, 502) for future in waiting)
    finally:
        os.kill(first, signal.SIGCONT)
    assert api.run(stuck, "echo again")["output"] == "again\n"


def test_a_stuck_sandbox_can_be_deleted(provider, server, api, make):
    stuck = make()
    instance = api.info(stuck)["provider_sandbox_id"]
    os.kill(first_process(provider, server, instance), signal.SIGSTOP)
    assert api.ok("DELETE", f"/sandboxes/{stuck}")["success"] is True
    assert instance not in [one["id"] for one in provider.instances(server)]
