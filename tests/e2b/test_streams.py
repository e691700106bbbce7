"""How streams end: with their sandbox, at once; and with the server, without anything lost."""

import functools
import itertools
import time

import e2b
import pytest

from features import NotRunning
from server import Server
from streams import Follower, Terminal, Watch
from tenants import Tenant
from waiting import wait_for

# These start servers of their own, which speak plain HTTP.
pytestmark = pytest.mark.plain

# The promise is a second. How long it took is told; on a busy machine only much more than that is a failure.
PROMPT = 60.0

# How often a server is killed under one command.
KILLS = 3


# --- killing a sandbox


def kill(sandbox, *ends):
    """Kills a sandbox, waits for the ends of its streams and says how long they took from the call on."""
    started = time.monotonic()
    sandbox.kill()
    for what, has_ended in ends:
        wait_for(has_ended, f"{what} ends", PROMPT)
        print(f"{what} ended {time.monotonic() - started:.3f} s after the kill began")


def test_command_streams_end_with_their_sandbox(fresh_sandbox):
    talking = Follower.run(fresh_sandbox, "echo begun; sleep 1000", timeout=0)
    quiet = Follower.run(fresh_sandbox, "sleep 1000", timeout=0)
    wait_for(talking.text, "it has begun")
    kill(fresh_sandbox, ("a command", lambda: talking.ending), ("a silent command", lambda: quiet.ending))
    for one in (talking, quiet):
        assert isinstance(one.ending[0], NotRunning), one.ending


def test_terminal_ends_with_its_sandbox(fresh_sandbox):
    terminal = Terminal.create(fresh_sandbox, e2b.PtySize(24, 80), timeout=0)
    terminal.type("echo begun-$((1+1))\n")
    terminal.expect("begun-2")
    kill(fresh_sandbox, ("a terminal", terminal.ending))
    assert isinstance(terminal.ending(), NotRunning), terminal.ending()


def test_watch_ends_with_its_sandbox(fresh_sandbox):
    watch = Watch(fresh_sandbox, "/home/user", **({"timeout": 0} if fresh_sandbox.is_async else {}))
    fresh_sandbox.files.write("x", "y")
    watch.until("x")
    if fresh_sandbox.is_async:
        kill(fresh_sandbox, ("a watch", lambda: watch.error))
        assert isinstance(watch.error[0], NotRunning), watch.error
    else:
        # This half asks for events again and again, so there is no stream to end.
        fresh_sandbox.kill()
        with pytest.raises(NotRunning):
            watch.events()


def test_download_ends_with_its_sandbox(fresh_sandbox):
    fresh_sandbox.commands.run("head -c 300M /dev/zero > big")
    chunks = iter(fresh_sandbox.files.read("big", format="stream"))
    next(chunks)
    fresh_sandbox.kill()
    started = time.monotonic()
    with pytest.raises(Exception):
        for _ in chunks:
            pass
    assert time.monotonic() - started < PROMPT


def test_stream_is_cut_by_a_pause_and_the_command_goes_on(half, fresh_sandbox):
    follower = Follower.run(fresh_sandbox, "while [ ! -e /tmp/go ]; do sleep 0.05; done; echo end", timeout=0)
    fresh_sandbox.pause()
    fresh_sandbox.connect()
    fresh_sandbox.files.write("/tmp/go", "")
    repeated = Follower.connect(fresh_sandbox, follower.handle.pid)
    assert repeated.ended().exit_code == 0


def test_client_that_leaves_does_not_end_its_command(fresh_sandbox):
    handle = fresh_sandbox.commands.run("sleep 0.3; echo alive > proof", background=True)
    handle.disconnect()
    wait_for(lambda: fresh_sandbox.files.exists("proof"), "the command went on")


# --- killing the server


@pytest.fixture
def fragile():
    """A server that may be killed."""
    with Server("--ready", "0") as server:
        yield server


def numbers(text):
    """The whole lines of a piece of output, as numbers."""
    return [int(line) for line in text.split("\n")[:-1] if line.strip()]


# Prints a number a line and keeps all of them in a file, until it is stopped.
COUNTER = """
import os, time
n = 0
with open("/tmp/written", "w") as kept:
    while not os.path.exists("/tmp/stop"):
        n += 1
        print(n, flush=True)
        print(n, file=kept)
        time.sleep(0.0005)
"""


def test_no_output_is_lost_when_the_server_is_killed(half, fragile):
    sandbox = half.client(**Tenant(fragile, "streams").connection).Sandbox.create(timeout=600)
    sandbox.files.write("/tmp/counter.py", COUNTER)
    follower = Follower.run(sandbox, "exec python3 /tmp/counter.py", timeout=0)
    pid, texts = follower.handle.pid, []
    for _ in range(KILLS):
        # Killed in the middle, while lines are on their way.
        wait_for(lambda: follower.text().count("\n") > 300, "it counts on")
        fragile.kill()
        broken = follower.ended()
        assert isinstance(broken, Exception), broken
        texts.append(follower.text())
        fragile.start()
        assert sandbox.is_running() is True, "the sandbox did not notice"
        follower = Follower.connect(sandbox, pid, timeout=0)
        assert follower.handle.pid == pid
    sandbox.files.write("/tmp/stop", "")
    ended = follower.ended()
    assert ended.exit_code == 0, ended
    texts.append(follower.text())
    written = numbers(sandbox.files.read("/tmp/written"))
    # What all of them saw is one text: each begins at the latest where the one before was cut, be it in the middle of a line.
    seen = functools.reduce(joined, texts)
    cuts = [(before[-20:], after[:20]) for before, after in itertools.pairwise(texts)]
    assert numbers(seen) == written, f"something is missing at one of the cuts {cuts}"


def joined(first, second):
    """One text of two that may overlap."""
    # It may be a megabyte that they share, which is found by its beginning far sooner than by trying every length.
    head = second[:100]
    at = first.find(head)
    while at >= 0:
        if second.startswith(first[at:]):
            return first + second[len(first) - at :]
        at = first.find(head, at + 1)
    for shared in range(min(len(first), len(head)), -1, -1):
        if first.endswith(second[:shared]):
            return first + second[shared:]
    return first + second


def test_unreachable_server_is_said_and_everything_goes_on_after(half, fragile):
    client = half.client(**Tenant(fragile, "outage").connection)
    sandbox = client.Sandbox.create(timeout=600)
    sandbox.files.write("kept.txt", "kept")
    handle = sandbox.commands.run("sleep 1000", background=True, timeout=0)
    fragile.kill()
    with pytest.raises(Exception) as raised:
        sandbox.commands.list()
    if hasattr(e2b, "SandboxUnreachableException"):
        assert raised.type is e2b.SandboxUnreachableException
        with pytest.raises(e2b.SandboxUnreachableException):
            sandbox.files.list("/")
    fragile.start()
    assert sandbox.files.read("kept.txt") == "kept"
    assert handle.pid in [process.pid for process in sandbox.commands.list()]
    assert client.Sandbox.connect(sandbox.sandbox_id).commands.run("echo back").stdout == "back\n"
    assert sandbox.kill() is True
