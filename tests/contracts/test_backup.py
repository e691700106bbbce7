"""`sandyard backup` and `restore`, from one data directory to another, while sandboxes work."""

import json
import os
import shutil
import stat
import tempfile
from pathlib import Path

import pytest
from data_dir import DataDir
from server import Server
from waiting import wait_for

# Writes numbered lines to its own disk and to the volume, each synced.
WRITER = """
i=0; while :; do i=$((i+1)); echo $i >>~/lines; echo $i >>/data/lines; sync ~/lines /data/lines; done
"""


@pytest.fixture
def folder():
    """A folder for the backup, and for the directory that is restored from it."""
    path = Path(tempfile.mkdtemp(prefix="sandyard-backup-", dir="/var/tmp"))
    yield path
    shutil.rmtree(path)


def allocated(path):
    return os.stat(path).st_blocks * 512


def lines_in(text):
    """The numbers that a writer wrote, which must be whole and without a gap."""
    numbers = [int(line) for line in text.split()]
    assert numbers == list(range(1, len(numbers) + 1)), text[-200:]
    return numbers


def state(api, sandbox):
    """The status, where a stopped sandbox is not the same as a paused one."""
    info = api.info(sandbox)
    return "stopped" if info["is_stopped"] else info["status"]


def fill(api):
    """A running, a paused and a stopped sandbox, a volume that one of them writes to, and a snapshot."""
    api.ok("POST", "/volumes", {"name": "shared"})
    user = api.ok("GET", "/info")["user"]
    running = api.create(user, alias="running", volumes={"/data": "shared"})
    api.run(running, WRITER, background=True)
    wait_for(lambda: api.run(running, "cat /data/lines 2>/dev/null || true")["stdout"], "the writer writes")
    api.write(running, "/home/user/kept.txt", "of the snapshot")
    api.ok("POST", f"/sandboxes/{running}/snapshot", {"name": "kept"})
    paused, stopped = api.create(user, alias="paused"), api.create(user, alias="stopped")
    api.write(paused, "/home/user/paused.txt", "of the paused one")
    api.write(stopped, "/home/user/stopped.txt", "of the stopped one")
    api.pause(paused)
    api.ok("POST", f"/sandboxes/{stopped}/stop")
    return running, paused, stopped


def test_a_backup_restores_sandboxes_snapshots_and_volumes_elsewhere(folder):
    with Server(LIMITS_SANDBOXES_PER_USER=0) as old:
        api = old.admin()
        running, paused, stopped = fill(api)
        done = old.data.ask("backup", folder, "--json")
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        file = Path(answer["file"])
        assert file.parent == folder and stat.S_IMODE(file.stat().st_mode) == 0o600 and file.stat().st_size == answer["bytes"]
        frozen = {one["id"]: one["frozen_ms"] for one in answer["sandboxes"]}
        ids = {api.info(one)["provider_sandbox_id"]: one for one in (running, paused, stopped)}
        assert {ids[id]: ms > 0 for id, ms in frozen.items()} == {running: True, paused: False, stopped: False}, frozen
        assert [one["frozen_ms"] > 0 for one in answer["volumes"]] == [True] and answer["has_database"]
        assert "frozen for" in done.stderr and not (old.data.path / "backup").exists()
        # Nobody but the writer noticed.
        assert [state(api, one) for one in (running, paused, stopped)] == ["running", "paused", "stopped"]
        count = len(lines_in(api.read(running, "/data/lines")))
        wait_for(lambda: len(lines_in(api.read(running, "/data/lines"))) > count, "the writer goes on")
        second = old.data.ask("backup", file)
        assert second.returncode == 125 and "exists" in second.stderr
        refused = old.data.ask("restore", file)
        assert refused.returncode == 125 and "is the data directory of a server" in refused.stderr
        api.close()
    data = DataDir(folder / "restored")
    try:
        restored = data.ask("restore", file, "--json")
        assert restored.returncode == 0, restored.stderr
        assert set(json.loads(restored.stdout)["sandboxes"]) == set(ids)
        for image in data.path.glob("*/*/disk.img"):
            assert allocated(image) < image.stat().st_size / 4 and stat.S_IMODE(image.stat().st_mode) == 0o600, image
        for key in ("admin.key", "secrets.key", "sandyard.db"):
            assert stat.S_IMODE((data.path / key).stat().st_mode) == 0o600
        with Server(LIMITS_SANDBOXES_PER_USER=0, data=data) as new:
            check(new.admin(), running, paused, stopped)
    finally:
        data.remove()


def check(api, running, paused, stopped):
    """What was in the sandboxes is there, and works."""
    for one in (running, paused, stopped):
        wait_for(lambda: state(api, one) == "stopped", f"{one} counts as stopped")
        api.ok("POST", f"/sandboxes/{one}/resume")
    assert api.read(paused, "/home/user/paused.txt") == "of the paused one"
    assert api.read(stopped, "/home/user/stopped.txt") == "of the stopped one"
    assert api.read(running, "/home/user/kept.txt") == "of the snapshot"
    own, shared = (len(lines_in(api.read(running, path))) for path in ("/home/user/lines", "/data/lines"))
    assert own and shared
    made = api.create(api.ok("GET", "/info")["user"], template_id="kept")
    assert api.read(made, "/home/user/kept.txt") == "of the snapshot"
    api.run(running, "echo more >>/data/lines")
    api.close()


def test_what_cannot_be_restored_is_refused_before_anything_is_written(folder):
    data = DataDir(folder / "empty")
    (folder / "other.tar").write_bytes(b"no archive")
    for file, reason in ((folder / "missing.tar", "opening"), (folder / "other.tar", "is not a backup")):
        refused = data.ask("restore", file)
        assert refused.returncode == 125 and reason in refused.stderr, refused.stderr
        assert not list(data.path.iterdir())
    (data.path / "file").touch()
    assert "is not empty" in data.ask("restore", folder / "other.tar").stderr
    assert "is not a data directory with sandboxes" in data.ask("backup", folder / "new.tar").stderr
