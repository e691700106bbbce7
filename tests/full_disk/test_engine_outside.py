"""Another program of the host fills the disk, at every moment of a sandbox's life, and frees it again."""

import glob
import os
import signal
from pathlib import Path

import processes
import pytest
from engine_server import errors_of, image_of, small_server, start_watching
from waiting import wait_for

# Writes files of 8 MiB until it has to stop, and notes in memory those whose fsync returned. Keeps the last twenty.
WRITER = r"""
import hashlib, os, time
promised, failed, number = open("/dev/shm/promised", "a"), open("/dev/shm/failed", "a"), 0
while not os.path.exists("/dev/shm/stop"):
    data = hashlib.sha256(str(number).encode()).digest() * (8 << 15)
    path = f"/home/user/f{number}"
    try:
        with open(path, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        print(path, error, file=failed, flush=True)
        time.sleep(0.05)
        continue
    print(path, hashlib.sha256(data).hexdigest(), file=promised, flush=True)
    number += 1
    if number > 20:
        os.remove(f"/home/user/f{number - 21}")
open("/dev/shm/ended", "w").close()
"""


@pytest.fixture(scope="module")
def small():
    with small_server(SANDBOX_READY="0") as parts:
        yield parts


def test_a_thousand_megabytes_without_sync_are_whole_after_the_host_was_full():
    with small_server(SANDBOX_READY="0") as (disk, _, api):
        sandbox = api.create()
        start_watching(disk)
        reply = api.run(sandbox, "dd if=/dev/urandom of=/home/user/big bs=1M count=1000 && sha256sum /home/user/big")
        assert reply["exit_code"] == 0, reply
        disk.fill()
        # What is in memory is written out by the kernel or the launcher; more cannot be written.
        wait_for(lambda: not pending(disk, api, sandbox), "everything is written out")
        assert api.run(sandbox, "cat /dev/zero > /home/user/more")["exit_code"] != 0
        disk.free()
        drop_caches(api, sandbox)
        repeated = api.run(sandbox, "sha256sum /home/user/big")
        assert repeated["stdout"] == reply["stdout"]
        assert api.status(sandbox) == "running"
        assert not errors_of(image_of(disk, api, sandbox))
        wait_for(lambda: api.run(sandbox, "dd if=/dev/zero of=/home/user/new bs=1M count=50 conv=fsync")["exit_code"] == 0,
                 "the sandbox can write again")
        wait_for(lambda: api.remove(api.create()) is None, "sandboxes can be made again")


def test_what_was_synced_is_there_whenever_the_host_runs_full(small):
    disk, _, api = small
    writer = api.create()
    start_watching(disk)
    api.write(writer, "/dev/shm/writer.py", WRITER)
    api.run(writer, "python3 /dev/shm/writer.py > /dev/shm/log 2>&1 &")
    for moment in ("write", "exec", "create", "snapshot"):
        promised = lambda: int(api.run(writer, "cat /dev/shm/promised | wc -l")["stdout"] or 0)
        before = promised()
        wait_for(lambda: promised() > before, "the writer goes on")
        disk.fill()
        if moment == "exec":
            assert api.run(writer, "echo alive")["stdout"] == "alive\n"
        elif moment == "create":
            reply = api.post("/sandboxes/create", {"user_id": "tester"})
            assert reply.status_code == 503, reply.text
            assert "MiB of the host's disk are free" in reply.text, reply.text
        elif moment == "snapshot":
            reply = api.post(f"/sandboxes/{writer}/snapshot", {"name": "full"})
            assert reply.status_code == 503, reply.text
            assert "MiB of the host's disk are free" in reply.text, reply.text
            assert "full" not in disk.data.local("template", "ls", "--local", "--json")
        disk.free()
    api.run(writer, "touch /dev/shm/stop")
    wait_for(lambda: api.run(writer, "test -e /dev/shm/ended")["exit_code"] == 0, "the writer ends")
    drop_caches(api, writer)
    lines = api.run(writer, "cat /dev/shm/promised")["stdout"].splitlines()
    assert len(lines) >= 4, api.run(writer, "cat /dev/shm/log /dev/shm/failed")
    for path, promised in (line.split() for line in lines[-20:]):
        assert api.run(writer, f"sha256sum {path}")["stdout"].split()[:1] == [promised], path
    assert api.status(writer) == "running"
    assert not errors_of(image_of(disk, api, writer))
    api.remove(writer)


def test_a_new_sandbox_keeps_its_disk_when_the_host_is_full_before_the_watcher_sees_it():
    # So much that nothing is prepared for a full disk.
    with small_server(40 << 10, SANDBOX_READY="0") as (disk, _, api):
        first = api.create()
        start_watching(disk)
        api.remove(first)
        # A child of the launcher has its name for a moment.
        children = [pid for launcher in disk.data.launchers() for pid in processes.children(launcher)]
        [watcher] = [pid for pid in children if "sandyard-disks" in processes.cmdline(pid)]
        os.kill(watcher, signal.SIGSTOP)
        try:
            sandbox = api.create()
            disk.fill()
            # The first commit since the mount. What it says of its own success is the program's affair: the disk has to stay whole.
            api.run(sandbox, "mkdir /home/user/d && touch /home/user/d/{1..50}; head -c 65536 /dev/urandom > /home/user/new; sync")
            assert not errors_of(image_of(disk, api, sandbox))
            disk.free()
        finally:
            os.kill(watcher, signal.SIGCONT)
        reply = api.run(sandbox, "echo mine > /home/user/mine && sync && cat /home/user/mine")
        assert reply["stdout"] == "mine\n", reply


def test_a_disk_that_is_removed_while_space_is_scarce_leaves_no_write_back_limit(small):
    disk, _, api = small
    sandbox = api.create()
    start_watching(disk)
    number = loop_of(image_of(disk, api, sandbox)).removeprefix("loop")
    limit = Path(f"/sys/class/bdi/7:{number}/strict_limit")
    wait_for(lambda: limit.read_text().strip() == "1", "the launcher limits what waits for write-back")
    api.remove(sandbox)
    # The device stays, for the next sandbox.
    wait_for(lambda: limit.read_text().strip() == "0", "the limit is lifted")


def pending(disk, api, sandbox):
    """Bytes of a sandbox that have no place on the host's disk yet."""
    name = loop_of(image_of(disk, api, sandbox))
    with open(f"/sys/fs/ext4/{name}/delayed_allocation_blocks") as file:
        return int(file.read())


def loop_of(image):
    for path in glob.glob("/sys/block/loop*/loop/backing_file"):
        with open(path) as file:
            if file.read().strip() == str(image):
                return path.split("/")[3]
    raise AssertionError(f"{image} has no loop device")


def drop_caches(api, sandbox):
    """Makes the next read come from the image, not from memory."""
    api.run(sandbox, "sync")
    program = "import os,glob\nfor p in glob.glob('/home/user/*'):\n  f=os.open(p,os.O_RDONLY); os.posix_fadvise(f,0,0,os.POSIX_FADV_DONTNEED)"
    api.run(sandbox, f'python3 -c "{program}"')
