"""A thousand timers come due at once while a server, Redis and the database's connections fail: each fires once."""

import math
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from api import stopwatch
from waiting import wait_for

COUNT = 1000
OWNER = "timers"
AT_ONCE = 16
SMALL = {"memory_limit": "64m", "timeout": 3600}
# From the first schedule to the moment at which all are due: longer than scheduling takes, so that none fires before.
LEAD = 20


@pytest.fixture(scope="module")
def thousand(cluster):
    """A thousand running sandboxes, half of them made at each of the two servers of one host."""
    apis = [cluster.a.api(), cluster.b.api()]
    elapsed = stopwatch()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        created = list(pool.map(lambda number: apis[number % 2].create(user_id=OWNER, **SMALL), range(COUNT)))
    print(f"\n{COUNT} sandboxes made in {elapsed():.1f} s")
    yield created
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda sandbox: apis[0].remove(sandbox), created))
    for api in apis:
        api.close()


def paused_count(cluster):
    """How many are paused, as the database says; past every server, since those are being killed."""
    return int(cluster.postgres.query(f"select count(*) from sandboxes where owner = '{OWNER}' and status = 'paused'"))


def fired_counts(cluster):
    """How often each was paused, as the database says: a thousand requests would tell no more."""
    counts = f"select sandbox_id, count(*) from events where owner = '{OWNER}' and kind = 'paused' group by sandbox_id"
    return {sandbox: int(count) for sandbox, count in (line.split("|") for line in cluster.postgres.query(counts).splitlines())}


def schedule_all(cluster, sandboxes):
    apis = [cluster.a.api(), cluster.b.api()]
    due = time.time() + LEAD

    def schedule(numbered):
        number, sandbox = numbered
        seconds = max(1, math.ceil(due - time.time()))
        apis[number % 2].ok("POST", "/sandboxes/schedule-timeout", {"sandbox_id": sandbox, "timeout_seconds": seconds})

    elapsed = stopwatch()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(schedule, enumerate(sandboxes)))
    print(f"{COUNT} timers set in {elapsed():.1f} s")
    for api in apis:
        api.close()


@pytest.fixture(scope="module")
def storm(cluster, thousand):
    """Lets all timers fire while everything around them fails."""
    schedule_all(cluster, thousand)
    reach = lambda number: wait_for(lambda: paused_count(cluster) >= number, f"{number} are paused", 400)  # noqa: E731
    reach(COUNT // 20)
    cluster.b.kill()
    reach(COUNT // 5)
    cluster.redis.kill()
    cluster.redis.start()
    reach(COUNT // 4)
    cut = cluster.postgres.cut_connections()
    cluster.b.start()
    reach(COUNT // 2)
    cut += cluster.postgres.cut_connections()
    elapsed = stopwatch()
    reach(COUNT)
    print(f"a server killed and started, Redis emptied, {cut} connections cut; the rest took {elapsed():.1f} s")
    return thousand


def test_every_timer_fired_exactly_once(cluster, storm):
    counted = fired_counts(cluster)
    fired = [counted.get(sandbox, 0) for sandbox in storm]
    print(f"\n{fired.count(1)} fired once, {fired.count(0)} never, {sum(n > 1 for n in fired)} more than once")
    assert fired == [1] * COUNT
    # And that is what callers are told.
    api = cluster.a.api()
    assert {len(api.events(sandbox, "paused")) for sandbox in storm[::50]} == {1}
    api.close()


def test_nothing_is_lost(cluster, storm):
    for server in (cluster.a, cluster.b):
        api = server.api()
        rows = api.all(owner=OWNER)
        assert {one["sandbox_id"] for one in rows} == set(storm)
        assert {one["status"] for one in rows} == {"paused"}
        api.close()
    states = {one["id"]: one["state"] for one in cluster.shared.instances()}
    assert [state for state in states.values() if state != "paused"] == []
    assert len(states) == COUNT


def test_no_timer_was_abandoned(cluster, storm):
    admin = cluster.a.admin()
    assert admin.ok("GET", "/timers/dead")["timers"] == []
    admin.close()


def test_what_was_paused_still_wakes(cluster, storm):
    api = cluster.b.api()
    for sandbox in storm[::100]:
        assert api.run(sandbox, "echo awake")["output"] == "awake\n"
    api.close()
