"""What time does to sandboxes, with minutes that last a second.

Intervals are long enough for a client on a busy machine to see a new sandbox before its time is over.
"""

import pytest
from conftest import config
from daytona import CreateSandboxFromSnapshotParams, Daytona, DaytonaBadRequestError, DaytonaNotFoundError, SandboxState
from running import Counterpart
from waiting import wait_for


@pytest.fixture(scope="module")
def hasty():
    with Counterpart("--minute", "1") as counterpart:
        yield counterpart


@pytest.fixture(scope="module")
def daytona(hasty):
    return Daytona(config(hasty))


def is_gone(daytona, sandbox):
    try:
        daytona.get(sandbox.id)
    except DaytonaNotFoundError:
        return True
    return False


def reaches(daytona, sandbox, state):
    wait_for(lambda: daytona.get(sandbox.id).state == state, f"it is {state}")


def test_auto_stop(daytona):
    sandbox = daytona.create(CreateSandboxFromSnapshotParams(auto_stop_interval=6))
    reaches(daytona, sandbox, SandboxState.STOPPED)


def test_auto_archive(daytona):
    sandbox = daytona.create(CreateSandboxFromSnapshotParams(auto_stop_interval=0, auto_archive_interval=6))
    sandbox.stop()
    reaches(daytona, sandbox, SandboxState.ARCHIVED)


def test_auto_delete(daytona):
    sandbox = daytona.create(CreateSandboxFromSnapshotParams(auto_stop_interval=6, auto_delete_interval=1))
    wait_for(lambda: is_gone(daytona, sandbox), "it is deleted")


def test_an_ephemeral_sandbox_goes_when_it_stops(daytona):
    sandbox = daytona.create(CreateSandboxFromSnapshotParams(ephemeral=True, auto_stop_interval=6))
    wait_for(lambda: is_gone(daytona, sandbox), "it is deleted")


def test_work_keeps_it_awake(daytona):
    idle = daytona.create(CreateSandboxFromSnapshotParams(auto_stop_interval=12))
    busy = daytona.create(CreateSandboxFromSnapshotParams(auto_stop_interval=12))

    def idle_sleeps():
        busy.process.exec("true")
        return daytona.get(idle.id).state == SandboxState.STOPPED

    wait_for(idle_sleeps, "the idle one stops")
    assert daytona.get(busy.id).state == SandboxState.STARTED


def test_a_life_is_over_whatever_it_does(daytona):
    sandbox = daytona.create(CreateSandboxFromSnapshotParams(auto_stop_interval=0, ttl_minutes=12))
    wait_for(lambda: is_gone(daytona, sandbox), "it is deleted")


def test_an_organization_may_bound_all_lives(hasty, daytona):
    hasty.bound_life(1000)
    try:
        with pytest.raises(DaytonaBadRequestError, match="maximum sandbox lifespan"):
            daytona.create(CreateSandboxFromSnapshotParams(ttl_minutes=0))
        sandbox = daytona.create(CreateSandboxFromSnapshotParams())
        assert daytona.get(sandbox.id).auto_destroy_at
    finally:
        hasty.bound_life(None)
    sandbox = daytona.create(CreateSandboxFromSnapshotParams())
    assert not daytona.get(sandbox.id).auto_destroy_at


def test_auto_pause_is_instead_of_auto_stop(daytona):
    machine = daytona.create(CreateSandboxFromSnapshotParams(snapshot="daytona-vm-small"))
    assert (machine.auto_stop_interval, machine.auto_pause_interval) == (0, 60)
    container = daytona.create(CreateSandboxFromSnapshotParams())
    assert (container.auto_stop_interval, container.auto_pause_interval) == (15, 0)
    asked = CreateSandboxFromSnapshotParams(snapshot="daytona-vm-small", auto_stop_interval=0, auto_pause_interval=6)
    reaches(daytona, daytona.create(asked), SandboxState.PAUSED)
    with pytest.raises(DaytonaBadRequestError, match="cannot be paused"):
        daytona.create(CreateSandboxFromSnapshotParams(auto_stop_interval=0, auto_pause_interval=6))
