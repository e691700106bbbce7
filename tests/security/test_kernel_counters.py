"""Kernel objects that are counted per user: what one sandbox uses is counted for that sandbox alone, not for host root."""

import json
import subprocess
import sys

import pytest

# Each program opens as many objects as it gets (or as many as asked for), prints how many, and keeps them while its standard
# input, or else the sandbox, lives. They need nothing but the standard library, and run inside and on the host alike.
PREPARE = """
import ctypes, json, os, signal, sys, time
libc, rt = ctypes.CDLL("libc.so.6", use_errno=True), ctypes.CDLL("librt.so.1", use_errno=True)
most = int(sys.argv[1])
class Attributes(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_long), ("maxmsg", ctypes.c_long), ("msgsize", ctypes.c_long), ("rest", ctypes.c_long * 5)]
def queue(number):
    name = b"/sandyard-test-%d-%d" % (os.getpid(), number)
    made = rt.mq_open(name, os.O_RDWR | os.O_CREAT, 0o600, ctypes.byref(Attributes(0, 10, 8192)))
    rt.mq_unlink(name)
    return made >= 0
def timer(number):
    return rt.timer_create(1, None, ctypes.byref(ctypes.c_void_p())) == 0
def watcher(number):
    return libc.inotify_init() >= 0
"""
COUNT = """
count = 0
while count < most and KIND(count): count += 1
print(json.dumps(count), flush=True)
"""
# Root inside has 65,536 user ids, and the limit on timers is for each of them.
COUNT_WITH_MANY_IDS = """
count = 0
for uid in range(2000, 2000 + 64):
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setuid(uid)
        mine = 0
        while mine < 4096 and KIND(mine): mine += 1
        os.write(writer, b"%d\\n" % mine)
        signal.pause()
    count += int(os.read(reader, 20))
print(json.dumps(count), flush=True)
"""
HOLD = "time.sleep(600)\n"
KINDS = ("queue", "timer")


def program(kind, count=COUNT, hold=""):
    return PREPARE + count.replace("KIND", kind) + hold


def on_host(kind):
    """How many of five can be made by root on the host."""
    done = subprocess.run([sys.executable, "-c", program(kind), "5"], capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout)


@pytest.fixture
def run_inside(api):
    """Runs a program in a sandbox; returns the number it prints."""

    def run_inside(sandbox, text, limit=100_000, hold=False):
        api.write(sandbox, "/tmp/count.py", text)
        command = f"sudo python3 /tmp/count.py {limit}"
        if hold:
            # It goes on after the command has ended, and says its number in a file.
            wait = "until [ -s /tmp/count ]; do sleep 0.05; done; cat /tmp/count"
            command = f"sudo rm -f /tmp/count; sudo setsid python3 /tmp/count.py {limit} >/tmp/count 2>&1 & {wait}"
        return json.loads(api.run(sandbox, command, timeout=120)["stdout"])

    return run_inside


@pytest.mark.parametrize("kind", KINDS)
def test_what_one_sandbox_uses_is_missing_nowhere_else(make, run_inside, kind):
    greedy, neighbour = make(), make()
    count = COUNT_WITH_MANY_IDS if kind == "timer" else COUNT
    assert run_inside(greedy, program(kind, count, HOLD), hold=True) > 0
    assert run_inside(neighbour, program(kind), limit=5) == 5
    assert on_host(kind) == 5


def test_watchers_of_several_sandboxes_do_not_add_up(make, run_inside):
    for _ in range(5):
        assert run_inside(make(), program("watcher", COUNT, HOLD), limit=30, hold=True) == 30
    assert on_host("watcher") == 5
