"""What time does to sandboxes, with minutes that last a second.

A client on a busy machine may see a new sandbox late. So its time is long until it was seen, and then made short.
"""

import pytest
from conftest import config
from daytona import CreateSandboxFromSnapshotParams, Daytona, DaytonaBadRequestError, DaytonaNotFoundError, SandboxState
from running import TIMEOUT, Counterpart
from waiting import wait_for

# An interval that no test lives to see.
LONG = 10_000


@pytest.fixture(scope="module")
def hasty():
    with Counterpart("--minute", "1") as counterpart:
        yield counterpart


@pytest.fixture(scope="module")
def daytona(hasty):
    return Daytona(config(hasty))


@pytest.fixture
def leisurely(counterpart):
    """A client of one whose minutes are minutes, and what it made is gone after the test."""
    daytona = Daytona(config(counterpart))
    created = []

    def make(**params):
        created.append(create(daytona, **params))
        return created[-1]

    yield daytona, make
    for sandbox in created:
        daytona.delete(sandbox)


def create(daytona, **params):
    return daytona.create(CreateSandboxFromSnapshotParams(**params), timeout=TIMEOUT)


def is_gone(daytona, sandbox):
    try:
        daytona.get(sandbox.id)
    except DaytonaNotFoundError:
        return True
    return False


def reaches(daytona, sandbox, state):
    wait_for(lambda: daytona.get(sandbox.id).state == state, f"it is {state}")


def test_auto_stop(daytona):
    sandbox = create(daytona, auto_stop_interval=LONG)
    sandbox.set_autostop_interval(1)
    reaches(daytona, sandbox, SandboxState.STOPPED)


def test_auto_archive(daytona):
    sandbox = create(daytona, auto_stop_interval=0, auto_archive_interval=LONG)
    sandbox.stop(timeout=TIMEOUT)
    sandbox.set_auto_archive_interval(1)
    reaches(daytona, sandbox, SandboxState.ARCHIVED)


def test_auto_delete(daytona):
    sandbox = create(daytona, auto_stop_interval=LONG, auto_delete_interval=1)
    sandbox.set_autostop_interval(1)
    wait_for(lambda: is_gone(daytona, sandbox), "it is deleted")


def test_an_ephemeral_sandbox_goes_when_it_stops(daytona):
    sandbox = create(daytona, ephemeral=True, auto_stop_interval=LONG)
    sandbox.set_autostop_interval(1)
    wait_for(lambda: is_gone(daytona, sandbox), "it is deleted")


def test_work_keeps_it_awake(daytona):
    idle, busy = create(daytona, auto_stop_interval=LONG), create(daytona, auto_stop_interval=LONG)
    busy.process.exec("true")
    for sandbox in (idle, busy):
        # Longer than a busy machine keeps anybody waiting.
        sandbox.set_autostop_interval(40)

    def idle_sleeps():
        busy.process.exec("true")
        return daytona.get(idle.id).state == SandboxState.STOPPED

    wait_for(idle_sleeps, "the idle one stops", 180)
    assert daytona.get(busy.id).state == SandboxState.STARTED


def test_a_life_is_over_whatever_it_does(daytona):
    sandbox = create(daytona, auto_stop_interval=0, ttl_minutes=LONG)
    sandbox.set_ttl(1)
    wait_for(lambda: is_gone(daytona, sandbox), "it is deleted")


def test_an_organization_may_bound_all_lives(counterpart, leisurely):
    daytona, make = leisurely
    counterpart.bound_life(1000)
    try:
        with pytest.raises(DaytonaBadRequestError, match="maximum sandbox lifespan"):
            make(ttl_minutes=0)
        assert daytona.get(make().id).auto_destroy_at
    finally:
        counterpart.bound_life(None)
    assert not daytona.get(make().id).auto_destroy_at


def test_auto_pause_is_instead_of_auto_stop(daytona, leisurely):
    _, make = leisurely
    machine, container = make(snapshot="daytona-vm-small"), make()
    assert (machine.auto_stop_interval, machine.auto_pause_interval) == (0, 60)
    assert (container.auto_stop_interval, container.auto_pause_interval) == (15, 0)
    hasty = create(daytona, snapshot="daytona-vm-small", auto_stop_interval=0, auto_pause_interval=LONG)
    hasty.set_auto_pause_interval(1)
    reaches(daytona, hasty, SandboxState.PAUSED)
    with pytest.raises(DaytonaBadRequestError, match="cannot be paused"):
        daytona.create(CreateSandboxFromSnapshotParams(auto_stop_interval=0, auto_pause_interval=6))
