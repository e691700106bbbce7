"""Two hundred Docker sandboxes made, used and deleted, ten at a time, beside an embedded sandbox that is used all the time.

Nothing is left afterwards: no container, no volume, no network, no port. What it took is printed and decides nothing.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from api import stopwatch
from dockerd import Dockerd
from ports_in_use import listening
from providers import docker_variables
from server import Server
from unreliable import Watcher

SANDBOXES = int(os.environ.get("DOCKER_LOAD", "200"))
AT_ONCE = 10


@pytest.fixture(scope="module")
def dockerd():
    with Dockerd() as dockerd:
        yield dockerd


@pytest.fixture(scope="module")
def server(dockerd):
    variables = docker_variables(dockerd.host, SANDYARD_PROVIDERS="embedded")
    with Server("--ready", "0", variables=variables, LIMITS_SANDBOXES_PER_USER=0) as server:
        yield server


def ports_of(server, dockerd):
    """Where the server and everything of Docker's listen."""
    return listening(server.pid, dockerd.pid)


def at(seconds, part):
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1000


def measurement(what, seconds):
    return f"{what}: p50 {at(seconds, 0.5):.0f} ms, p99 {at(seconds, 0.99):.0f} ms, max {at(seconds, 1):.0f} ms"


def test_two_hundred_come_and_go_ten_at_a_time(server, dockerd):
    api = server.api()
    before, ports = dockerd.api.remains(), ports_of(server, dockerd)
    times = {"creates": [], "commands": [], "deletes": []}

    def whole_life(number):
        elapsed = stopwatch()
        sandbox = api.create(user_id=f"crowd-{number}", memory_limit="128m")
        times["creates"].append(elapsed())
        elapsed = stopwatch()
        assert api.run(sandbox, f"echo {number}")["output"] == f"{number}\n"
        times["commands"].append(elapsed())
        elapsed = stopwatch()
        assert api.ok("DELETE", f"/sandboxes/{sandbox}")["success"] is True
        times["deletes"].append(elapsed())

    elapsed = stopwatch()
    with Watcher(server) as watcher, ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(whole_life, range(SANDBOXES)))
    print(f"\n{SANDBOXES} Docker sandboxes, {AT_ONCE} at a time, in {elapsed():.1f} s; {watcher.summary()}")
    for what, seconds in times.items():
        print(measurement(what, seconds))
    assert dockerd.api.remains() == before, "no container, no volume and no network is left"
    assert api.all() == []
    assert ports_of(server, dockerd) == ports, "no port is left"
    api.close()


def test_ten_at_once_have_no_port_of_the_host(server, dockerd):
    """Ports are opened through the agents, so that there is no pool to run dry."""
    api = server.api()
    ports = ports_of(server, dockerd)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        created = list(pool.map(lambda n: api.create(user_id=f"crowd-{n}", memory_limit="128m"), range(AT_ONCE)))
        urls = [api.ok("POST", "/sandboxes/expose-port", {"sandbox_id": one, "port": 3000})["url"] for one in created]
        assert len(set(urls)) == AT_ONCE and ports_of(server, dockerd) == ports
        list(pool.map(api.remove, created))
    api.close()
