"""Processes of this host, as /proc shows them."""

import os
import signal
from pathlib import Path

from waiting import wait_for


def cmdline(pid):
    """The arguments of a process; empty when it is gone or never had any."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def with_argument(argument):
    """Processes that were started with exactly this argument."""
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [pid for pid in pids if argument in cmdline(pid)]


def children(pid):
    """Processes that a process has started, without theirs."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def parent(pid):
    """The process that has started it; none when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def is_alive(pid):
    """Whether a process exists and is more than an entry that nobody has collected yet."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def memory_bytes(pid, field="VmRSS"):
    """`VmRSS`, memory in use now, or `VmHWM`, the most that ever was."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"process {pid} has no {field}")


def reset_peak(pid):
    """Lets `VmHWM` begin anew; proc_pid_clear_refs(5)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def end(pid, timeout=60.0):
    """Terminates a process, and kills it when it has not ended after `timeout` seconds."""
    for number, limit in ((signal.SIGTERM, timeout), (signal.SIGKILL, 60.0)):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        try:
            wait_for(lambda: not is_alive(pid), f"process {pid} ends", limit)
            return
        except AssertionError:
            continue
    raise AssertionError(f"process {pid} does not end: {cmdline(pid)}")
