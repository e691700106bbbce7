"""Snapshots: made, named, listed, deleted, created from; and forks."""

import e2b
import pytest

from starts import BOOT
from test_list import all_of


@pytest.fixture
def snap(half):
    """Makes snapshots that are gone after the test."""
    created = []

    def snap(sandbox, **options):
        created.append(sandbox.create_snapshot(**options))
        return created[-1]

    yield snap
    for snapshot in created:
        half.Sandbox.delete_snapshot(snapshot.snapshot_id)


def all_pages(paginator):
    return [snapshot.snapshot_id for snapshot in all_of(paginator)]


def test_sandboxes_are_made_from_a_snapshot(fresh_sandbox, make, snap):
    fresh_sandbox.files.write("kept.txt", "kept")
    snapshot = snap(fresh_sandbox)
    fresh_sandbox.files.write("kept.txt", "changed later")
    copies = [make(snapshot.snapshot_id) for _ in range(2)]
    assert [copy.files.read("kept.txt") for copy in copies] == ["kept", "kept"]
    copies[0].files.write("kept.txt", "the copy's own")
    assert (fresh_sandbox.files.read("kept.txt"), copies[1].files.read("kept.txt")) == ("changed later", "kept")


def test_source_goes_on_and_may_go_away(fresh_sandbox, make, snap):
    handle = fresh_sandbox.commands.run("sleep 1000", background=True)
    fresh_sandbox.files.write("kept.txt", "kept")
    snapshot = snap(fresh_sandbox)
    assert handle.pid in [process.pid for process in fresh_sandbox.commands.list()]
    fresh_sandbox.kill()
    assert make(snapshot.snapshot_id).files.read("kept.txt") == "kept"


def test_named_snapshot_is_a_template_of_that_name(half, fresh_sandbox, make, snap, mark):
    fresh_sandbox.files.write("version", "1")
    first = snap(fresh_sandbox, name=mark)
    assert any(mark in name for name in first.names)
    assert make(mark).files.read("version") == "1"
    fresh_sandbox.files.write("version", "2")
    snap(fresh_sandbox, name=mark)
    assert make(mark).files.read("version") == "2", "the name goes to the newest"


def test_snapshots_are_listed_newest_first_by_sandbox_and_by_name(half, fresh_sandbox, make, snap, mark):
    other = make()
    created = [snap(fresh_sandbox).snapshot_id, snap(fresh_sandbox, name=mark).snapshot_id, snap(fresh_sandbox).snapshot_id]
    remote = half.Sandbox.create_snapshot(other.sandbox_id).snapshot_id
    assert all_pages(fresh_sandbox.list_snapshots()) == created[::-1]
    assert all_pages(half.Sandbox.list_snapshots(sandbox_id=fresh_sandbox.sandbox_id)) == created[::-1]
    assert {*created, remote} <= set(all_pages(half.Sandbox.list_snapshots()))
    assert all_pages(half.Sandbox.list_snapshots(name=mark)) == [created[1]]
    pages = fresh_sandbox.list_snapshots(limit=2)
    assert [one.snapshot_id for one in pages.next_items()] == created[:0:-1]
    assert pages.has_next is True
    repeated = fresh_sandbox.list_snapshots(limit=2, next_token=pages.next_token)
    assert [one.snapshot_id for one in repeated.next_items()] == created[:1]
    assert repeated.has_next is False
    half.Sandbox.delete_snapshot(remote)


def test_deleted_snapshot_is_gone(half, fresh_sandbox, snap):
    snapshot = snap(fresh_sandbox)
    assert half.Sandbox.delete_snapshot(snapshot.snapshot_id) is True
    assert half.Sandbox.delete_snapshot(snapshot.snapshot_id) is False
    assert snapshot.snapshot_id not in all_pages(fresh_sandbox.list_snapshots())
    with pytest.raises(e2b.SandboxException):
        half.Sandbox.create(snapshot.snapshot_id)


def test_deleting_leaves_what_was_made_from_it(half, fresh_sandbox, make, snap):
    fresh_sandbox.files.write("kept.txt", "kept")
    snapshot = snap(fresh_sandbox)
    copy = make(snapshot.snapshot_id)
    half.Sandbox.delete_snapshot(snapshot.snapshot_id)
    assert copy.files.read("kept.txt") == "kept"
    copy.pause()
    assert copy.connect().files.read("kept.txt") == "kept"


def test_snapshots_of_others_are_not_there(half, fresh_sandbox, snap, other_user):
    snapshot = snap(fresh_sandbox)
    client = half.client(**other_user.connection)
    assert snapshot.snapshot_id not in all_pages(client.Sandbox.list_snapshots())
    assert client.Sandbox.delete_snapshot(snapshot.snapshot_id) is False
    with pytest.raises(e2b.SandboxException):
        client.Sandbox.create(snapshot.snapshot_id)


@pytest.mark.needs("snapshot_mode")
def test_snapshot_of_the_files_alone(half, fresh_sandbox, make, mark):
    fresh_sandbox.files.write("kept.txt", "kept")
    snapshot = fresh_sandbox.create_snapshot(name=mark, mode="filesystem")
    copy = make(snapshot.snapshot_id)
    assert copy.files.read("kept.txt") == "kept"
    assert copy.commands.run(BOOT).stdout != fresh_sandbox.commands.run(BOOT).stdout
    half.Sandbox.delete_snapshot(snapshot.snapshot_id)


def test_templates_are_there_or_not(half, fresh_sandbox, snap, mark):
    """All that is asked of templates before they can be built: whether there is one."""
    assert (half.Template.exists("base"), half.Template.exists(mark)) == (True, False)
    snap(fresh_sandbox, name=mark)
    assert (half.Template.exists(mark), half.Template.alias_exists(mark)) == (True, True)


# --- forks


def test_fork_has_the_files_of_its_source(fresh_sandbox):
    fresh_sandbox.files.write("kept.txt", "kept")
    forks = fresh_sandbox.fork(timeout=240, count=3)
    assert len({fork.sandbox_id for fork in forks} | {fresh_sandbox.sandbox_id}) == 4
    for number, fork in enumerate(forks):
        assert fork.files.read("kept.txt") == "kept"
        fork.files.write("kept.txt", f"fork {number}")
    assert [fork.files.read("kept.txt") for fork in forks] == ["fork 0", "fork 1", "fork 2"]
    assert fresh_sandbox.files.read("kept.txt") == "kept"
    assert [fork.kill() for fork in forks] == [True] * 3


def test_fork_is_one_unless_said(half, fresh_sandbox):
    # With a time of its own: unless more is asked for, a fork lives 15 seconds.
    (fork,) = half.Sandbox.fork(fresh_sandbox.sandbox_id, timeout=240)
    assert fork.commands.run("echo forked").stdout == "forked\n"
    fork.kill()


def test_source_runs_on_beside_its_forks(fresh_sandbox):
    handle = fresh_sandbox.commands.run("sleep 1000", background=True)
    (fork,) = fresh_sandbox.fork()
    assert handle.pid in [process.pid for process in fresh_sandbox.commands.list()]
    fork.kill()
    assert fresh_sandbox.is_running() is True


def test_impossible_counts_are_refused(fresh_sandbox):
    for count in (0, -1, 100_000):
        with pytest.raises(e2b.SandboxException):
            fresh_sandbox.fork(count=count)
