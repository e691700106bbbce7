"""Sandboxes through the official SDK: made, found, stopped, started, kept and removed."""

import uuid

import pytest
from conftest import config
from daytona import (
    CreateSandboxFromImageParams,
    CreateSandboxFromSnapshotParams,
    Daytona,
    DaytonaBadRequestError,
    DaytonaConflictError,
    DaytonaError,
    DaytonaNotFoundError,
    ListSandboxesQuery,
    Resources,
    SandboxState,
)
from waiting import wait_for


def reaches(sandbox, state):
    def observe():
        sandbox.refresh_data()
        return sandbox.state == state

    wait_for(observe, lambda: f"{state} is reached; it is {sandbox.state}")


def shows(sandbox, state):
    """What the SDK itself knows. News of a state that was may come late; what follows it is the last word."""
    wait_for(lambda: sandbox.state == state, lambda: f"{state} is shown; it is {sandbox.state}")


def test_create_says_what_was_asked_for(make):
    sandbox = make(
        name=f"named-{uuid.uuid4().hex[:6]}",
        labels={"team": "blue"},
        env_vars={"GREETING": "good day"},
        auto_stop_interval=7,
        auto_archive_interval=60,
        auto_delete_interval=120,
        public=True,
    )
    shows(sandbox, SandboxState.STARTED)
    assert sandbox.labels["team"] == "blue"
    assert sandbox.env == {"GREETING": "good day"}
    assert (sandbox.auto_stop_interval, sandbox.auto_archive_interval, sandbox.auto_delete_interval) == (7, 60, 120)
    assert sandbox.public
    assert sandbox.user == "daytona"
    assert sandbox.target == "us"
    assert (sandbox.cpu, sandbox.memory, sandbox.disk) == (1, 1, 3)
    assert sandbox.process.exec("echo $GREETING").result == "good day\n"


def test_defaults_are_daytonas(make):
    sandbox = make()
    assert (sandbox.auto_stop_interval, sandbox.auto_archive_interval, sandbox.auto_delete_interval) == (15, 10080, -1)
    assert sandbox.name == sandbox.id
    assert not sandbox.public


def test_an_image_brings_its_sizes(daytona):
    sizes = Resources(cpu=2, memory=2, disk=5)
    sandbox = daytona.create(CreateSandboxFromImageParams(image="debian:12", resources=sizes))
    assert (sandbox.cpu, sandbox.memory, sandbox.disk) == (2, 2, 5)
    daytona.delete(sandbox)


def test_get_by_id_and_by_name(daytona, make):
    sandbox = make(name=f"found-{uuid.uuid4().hex[:6]}")
    assert daytona.get(sandbox.id).name == sandbox.name
    assert daytona.get(sandbox.name).id == sandbox.id


def test_a_name_is_given_once(make):
    name = f"once-{uuid.uuid4().hex[:6]}"
    make(name=name)
    with pytest.raises(DaytonaConflictError):
        make(name=name)


def test_list_by_labels_in_pages(daytona, make):
    run = uuid.uuid4().hex
    created_ids = {make(labels={"run": run, "number": str(number)}).id for number in range(5)}
    make(labels={"run": "another"})
    entries = [sandbox.id for sandbox in daytona.list(ListSandboxesQuery(labels={"run": run}, limit=2))]
    assert len(entries) == 5
    assert set(entries) == created_ids
    third = list(daytona.list(ListSandboxesQuery(labels={"run": run, "number": "3"})))
    assert [sandbox.labels["number"] for sandbox in third] == ["3"]
    assert created_ids < {sandbox.id for sandbox in daytona.list()}


def test_list_by_state(daytona, make):
    run = uuid.uuid4().hex
    stopped, _started = make(labels={"run": run}), make(labels={"run": run})
    stopped.stop()
    query = ListSandboxesQuery(labels={"run": run}, states=[SandboxState.STOPPED])
    assert [sandbox.id for sandbox in daytona.list(query)] == [stopped.id]


def test_stop_ends_processes_and_keeps_files(make):
    sandbox = make()
    sandbox.fs.upload_file(b"kept", "note")
    sandbox.process.exec("sleep 1000 & echo $! >pid")
    sandbox.stop()
    shows(sandbox, SandboxState.STOPPED)
    with pytest.raises(DaytonaBadRequestError):
        sandbox.process.exec("true")
    sandbox.start()
    shows(sandbox, SandboxState.STARTED)
    assert sandbox.fs.download_file("note") == b"kept"
    assert sandbox.process.exec("pgrep -x sleep").result == ""


def test_archive_and_back(make):
    sandbox = make()
    sandbox.fs.upload_file(b"kept", "note")
    with pytest.raises(DaytonaBadRequestError):
        sandbox.archive()
    sandbox.stop()
    sandbox.archive()
    reaches(sandbox, SandboxState.ARCHIVED)
    sandbox.start()
    assert sandbox.fs.download_file("note") == b"kept"


def test_pause_keeps_memory_where_the_class_can(make):
    with pytest.raises(DaytonaError, match="cannot be paused"):
        make().pause()
    sandbox = make(snapshot="daytona-vm-small", auto_stop_interval=0)
    sandbox.process.exec("sleep 1000 >/dev/null 2>&1 & echo $! >pid")
    sandbox.pause()
    shows(sandbox, SandboxState.PAUSED)
    sandbox.start()
    assert sandbox.process.exec("kill -0 $(cat pid)").exit_code == 0
    sandbox.set_auto_pause_interval(20)
    sandbox.refresh_data()
    assert sandbox.auto_pause_interval == 20


def test_fork_where_the_class_can(daytona, make):
    sandbox = make(snapshot="daytona-vm-small", auto_stop_interval=0)
    sandbox.fs.upload_file(b"shared", "note")
    forked = sandbox.fork()
    assert forked.id != sandbox.id
    assert forked.fs.download_file("note") == b"shared"
    daytona.delete(forked)


def test_an_error_is_recovered_from(counterpart, make):
    sandbox = make()
    sandbox.fs.upload_file(b"kept", "note")
    with pytest.raises(DaytonaBadRequestError):
        sandbox.recover()
    counterpart.break_down(sandbox)
    # A client that hears of the error late, by its events, would take it for the outcome of the recovery.
    found = Daytona(config(counterpart)).get(sandbox.id)
    assert found.state == SandboxState.ERROR
    assert found.error_reason
    assert found.recoverable
    found.recover()
    shows(found, SandboxState.STARTED)
    assert found.fs.download_file("note") == b"kept"


def test_delete_is_for_good(daytona, make):
    sandbox = make()
    daytona.delete(sandbox, wait=True)
    shows(sandbox, SandboxState.DESTROYED)
    with pytest.raises(DaytonaNotFoundError):
        daytona.get(sandbox.id)
    with pytest.raises(DaytonaNotFoundError):
        daytona.delete(sandbox)


def test_settings_of_a_running_sandbox(daytona, make):
    sandbox = make(labels={"old": "1"})
    assert sandbox.set_labels({"new": "2"}) == {"new": "2"}
    sandbox.set_autostop_interval(30)
    sandbox.set_auto_archive_interval(90)
    sandbox.set_auto_delete_interval(200)
    sandbox.set_public(True)
    sandbox.set_ttl(600)
    sandbox.refresh_activity()
    seen = daytona.get(sandbox.id)
    assert seen.labels == {"new": "2"}
    assert (seen.auto_stop_interval, seen.auto_archive_interval, seen.auto_delete_interval) == (30, 90, 200)
    assert seen.public
    assert seen.auto_destroy_at
    assert seen.last_activity_at >= sandbox.last_activity_at


def test_resize(make):
    sandbox = make()
    sandbox.resize(Resources(cpu=2))
    assert (sandbox.cpu, sandbox.memory) == (2, 1)
    with pytest.raises(DaytonaBadRequestError):
        sandbox.resize(Resources(disk=10))
    sandbox.stop()
    sandbox.resize(Resources(disk=10))
    assert sandbox.disk == 10


def test_network_settings_reach_the_sandbox(make):
    sandbox = make(network_block_all=True)
    assert sandbox.network_block_all
    sandbox.update_network_settings(network_block_all=False, network_allow_list="192.0.2.0/24")
    assert (sandbox.network_block_all, sandbox.network_allow_list) == (False, "192.0.2.0/24")
    sandbox.update_network_settings(network_block_all=True)
    assert sandbox.network_block_all


def test_foreign_sandboxes_are_left_alone(daytona, make):
    """Sandboxes with and without labels live side by side."""
    labelled, foreign = make(labels={"sandyard": "installation"}), make()
    daytona.delete(labelled, wait=True)
    assert daytona.get(foreign.id).state == SandboxState.STARTED


def test_an_unknown_snapshot_is_refused(daytona):
    with pytest.raises(DaytonaBadRequestError, match="no-such-snapshot"):
        daytona.create(CreateSandboxFromSnapshotParams(snapshot="no-such-snapshot"))
