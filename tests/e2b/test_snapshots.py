"""Snapshots: made, named, listed, deleted, created from; and forks."""

import e2b
import pytest

from starts import BOOT
from test_list import all_of


@pytest.fixture
def snap(half):
    """Makes snapshots that are gone after the test."""
    made = []

    def snap(sandbox, **options):
        made.append(sandbox.create_snapshot(**options))
        return made[-1]

    yield snap
    for snapshot in made:
        half.Sandbox.delete_snapshot(snapshot.snapshot_id)


def listed(paginator):
    return [snapshot.snapshot_id for snapshot in all_of(paginator)]


def test_sandboxes_are_made_from_a_snapshot(own, make, snap):
    own.files.write("kept.txt", "kept")
    snapshot = snap(own)
    own.files.write("kept.txt", "changed later")
    copies = [make(snapshot.snapshot_id) for _ in range(2)]
    assert [copy.files.read("kept.txt") for copy in copies] == ["kept", "kept"]
    copies[0].files.write("kept.txt", "the copy's own")
    assert (own.files.read("kept.txt"), copies[1].files.read("kept.txt")) == ("changed later", "kept")


def test_source_goes_on_and_may_go_away(own, make, snap):
    handle = own.commands.run("sleep 1000", background=True)
    own.files.write("kept.txt", "kept")
    snapshot = snap(own)
    assert handle.pid in [process.pid for process in own.commands.list()]
    own.kill()
    assert make(snapshot.snapshot_id).files.read("kept.txt") == "kept"


def test_named_snapshot_is_a_template_of_that_name(half, own, make, snap, mark):
    own.files.write("version", "1")
    first = snap(own, name=mark)
    assert any(mark in name for name in first.names)
    assert make(mark).files.read("version") == "1"
    own.files.write("version", "2")
    snap(own, name=mark)
    assert make(mark).files.read("version") == "2", "the name goes to the newest"


def test_snapshots_are_listed_newest_first_by_sandbox_and_by_name(half, own, make, snap, mark):
    other = make()
    made = [snap(own).snapshot_id, snap(own, name=mark).snapshot_id, snap(own).snapshot_id]
    elsewhere = half.Sandbox.create_snapshot(other.sandbox_id).snapshot_id
    assert listed(own.list_snapshots()) == made[::-1]
    assert listed(half.Sandbox.list_snapshots(sandbox_id=own.sandbox_id)) == made[::-1]
    assert {*made, elsewhere} <= set(listed(half.Sandbox.list_snapshots()))
    assert listed(half.Sandbox.list_snapshots(name=mark)) == [made[1]]
    pages = own.list_snapshots(limit=2)
    assert [one.snapshot_id for one in pages.next_items()] == made[:0:-1]
    assert pages.has_next is True
    again = own.list_snapshots(limit=2, next_token=pages.next_token)
    assert [one.snapshot_id for one in again.next_items()] == made[:1]
    assert again.has_next is False
    half.Sandbox.delete_snapshot(elsewhere)


def test_deleted_snapshot_is_gone(half, own, snap):
    snapshot = snap(own)
    assert half.Sandbox.delete_snapshot(snapshot.snapshot_id) is True
    assert half.Sandbox.delete_snapshot(snapshot.snapshot_id) is False
    assert snapshot.snapshot_id not in listed(own.list_snapshots())
    with pytest.raises(e2b.SandboxException):
        half.Sandbox.create(snapshot.snapshot_id)


def test_deleting_leaves_what_was_made_from_it(half, own, make, snap):
    own.files.write("kept.txt", "kept")
    snapshot = snap(own)
    copy = make(snapshot.snapshot_id)
    half.Sandbox.delete_snapshot(snapshot.snapshot_id)
    assert copy.files.read("kept.txt") == "kept"
    copy.pause()
    assert copy.connect().files.read("kept.txt") == "kept"


def test_snapshots_of_others_are_not_there(half, own, snap, stranger):
    snapshot = snap(own)
    client = half.client(**stranger.connection)
    assert snapshot.snapshot_id not in listed(client.Sandbox.list_snapshots())
    assert client.Sandbox.delete_snapshot(snapshot.snapshot_id) is False
    with pytest.raises(e2b.SandboxException):
        client.Sandbox.create(snapshot.snapshot_id)


@pytest.mark.needs("snapshot_mode")
def test_snapshot_of_the_files_alone(half, own, make, mark):
    own.files.write("kept.txt", "kept")
    snapshot = own.create_snapshot(name=mark, mode="filesystem")
    copy = make(snapshot.snapshot_id)
    assert copy.files.read("kept.txt") == "kept"
    assert copy.commands.run(BOOT).stdout != own.commands.run(BOOT).stdout
    half.Sandbox.delete_snapshot(snapshot.snapshot_id)


def test_templates_are_there_or_not(half, own, snap, mark):
    """All that is asked of templates before they can be built: whether there is one."""
    assert (half.Template.exists("base"), half.Template.exists(mark)) == (True, False)
    snap(own, name=mark)
    assert (half.Template.exists(mark), half.Template.alias_exists(mark)) == (True, True)


# --- forks


def test_fork_has_the_files_of_its_source(own):
    own.files.write("kept.txt", "kept")
    forks = own.fork(timeout=240, count=3)
    assert len({fork.sandbox_id for fork in forks} | {own.sandbox_id}) == 4
    for number, fork in enumerate(forks):
        assert fork.files.read("kept.txt") == "kept"
        fork.files.write("kept.txt", f"fork {number}")
    assert [fork.files.read("kept.txt") for fork in forks] == ["fork 0", "fork 1", "fork 2"]
    assert own.files.read("kept.txt") == "kept"
    assert [fork.kill() for fork in forks] == [True] * 3


def test_fork_is_one_unless_said(half, own):
    # With a time of its own: unless more is asked for, a fork lives 15 seconds.
    (fork,) = half.Sandbox.fork(own.sandbox_id, timeout=240)
    assert fork.commands.run("echo forked").stdout == "forked\n"
    fork.kill()


def test_source_runs_on_beside_its_forks(own):
    handle = own.commands.run("sleep 1000", background=True)
    (fork,) = own.fork()
    assert handle.pid in [process.pid for process in own.commands.list()]
    fork.kill()
    assert own.is_running() is True


def test_impossible_counts_are_refused(own):
    for count in (0, -1, 100_000):
        with pytest.raises(e2b.SandboxException):
            own.fork(count=count)
