"""Snapshots through the official SDK."""

import uuid

import pytest
from daytona import (
    CreateSandboxFromSnapshotParams,
    CreateSnapshotParams,
    DaytonaBadRequestError,
    DaytonaConflictError,
    DaytonaNotFoundError,
    Resources,
)
from daytona_api_client import CreateSandboxSnapshot
from daytona_api_client.exceptions import ApiException
from waiting import wait_for


@pytest.fixture
def name():
    return f"snapshot-{uuid.uuid4().hex[:8]}"


def test_list_and_get(daytona):
    entries = daytona.snapshot.list()
    assert entries.total == len(entries.items) >= 2
    general = daytona.snapshot.get("daytona-small")
    assert (general.general, general.state, general.cpu, general.mem, general.disk) == (True, "active", 1, 1, 3)
    assert daytona.snapshot.get(general.id).name == "daytona-small"
    first, second = (daytona.snapshot.list(page=page, limit=1).items for page in (1, 2))
    assert [first[0].name, second[0].name] == [snapshot.name for snapshot in entries.items[:2]]
    with pytest.raises(DaytonaNotFoundError):
        daytona.snapshot.get("no-such-snapshot")


def test_from_an_image(daytona, name):
    response = []
    sizes = Resources(cpu=2, memory=1, disk=4)
    created = daytona.snapshot.create(CreateSnapshotParams(name=name, image="debian:12", resources=sizes), on_logs=response.append)
    assert (created.state, created.cpu, created.disk) == ("active", 2, 4)
    assert response
    with pytest.raises(DaytonaConflictError):
        daytona.snapshot.create(CreateSnapshotParams(name=name, image="debian:12"))
    sandbox = daytona.create(CreateSandboxFromSnapshotParams(snapshot=name))
    assert (sandbox.snapshot, sandbox.cpu, sandbox.disk) == (name, 2, 4)
    daytona.delete(sandbox)
    daytona.snapshot.delete(created)
    with pytest.raises(DaytonaNotFoundError):
        daytona.snapshot.get(name)


def test_of_a_sandbox(daytona, make, name):
    source = make()
    source.fs.upload_file(b"carried over", "note")
    source.create_snapshot(name)
    snapshot = daytona.snapshot.get(name)
    assert (snapshot.state, snapshot.source_sandbox_id) == ("active", source.id)
    assert [found.name for found in daytona.snapshot.list(source_sandbox_id=source.id).items] == [name]
    copy = make(snapshot=name)
    assert copy.fs.download_file("note") == b"carried over"
    daytona.snapshot.delete(name)
    assert copy.fs.download_file("note") == b"carried over"


def test_a_machine_is_kept_as_it_runs_or_when_it_is_stopped(daytona, make, name):
    machine = make(snapshot="daytona-vm-small", auto_stop_interval=0)
    machine.fs.upload_file(b"carried over", "note")
    with pytest.raises(DaytonaBadRequestError, match="must be started"):
        machine.create_snapshot(name)
    request_log = CreateSandboxSnapshot(name=name, include_memory=True)
    machine._sandbox_api.create_sandbox_snapshot(machine.id, request_log)
    wait_for(lambda: daytona.snapshot.get(name).state == "active", "it is kept")
    assert daytona.snapshot.get(name).sandbox_class == "linux-vm"
    assert make(snapshot=name).fs.download_file("note") == b"carried over"
    daytona.snapshot.delete(name)
    wait_for(lambda: daytona.get(machine.id).state == "started", "it goes on")
    machine.stop()
    machine.create_snapshot(name)
    daytona.snapshot.delete(name)
    with pytest.raises(ApiException, match="linux-vm") as refused:
        machine._sandbox_api.create_sandbox_snapshot(make().id, request_log)
    assert refused.value.status == 400


def test_the_general_ones_are_not_ours(daytona):
    with pytest.raises(DaytonaBadRequestError):
        daytona.snapshot.delete("daytona-small")
