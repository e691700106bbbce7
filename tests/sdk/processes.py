"""What the host's process table says about the processes of the agent's namespace."""

import itertools
import os
from pathlib import Path

_marks = itertools.count(1)


def unique_seconds():
    """A number of seconds nobody else sleeps for, to find a `sleep` of this test by."""
    return str(10_000_000 + os.getpid() * 1000 + next(_marks))


def with_mark(mark):
    """The pids of live processes that have `mark` in their command line."""
    return _alive(lambda cmdline: mark.encode() in cmdline)


def with_argument(argument):
    """The pids of live processes that were given exactly this argument."""
    return _alive(lambda cmdline: argument.encode() in cmdline.split(b"\0"))


def _alive(is_wanted):
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if is_wanted((entry / "cmdline").read_bytes()) and _state(entry) != "Z":
                found.append(int(entry.name))
        except OSError:
            pass  # It ended while we looked.
    return found


def zombies_below(pid):
    """The pids of dead processes nobody has reaped, among the descendants of `pid`."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = (_parent(entry), _state(entry))
        except OSError:
            pass

    def below(child):
        while child in parents:
            child = parents[child][0]
            if child == pid:
                return True
        return False

    return [child for child, (_, state) in parents.items() if state == "Z" and below(child)]


def _fields(entry):
    # The name in parentheses may hold anything, so what follows the last one is split.
    return (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()


def _state(entry):
    return _fields(entry)[0]


def _parent(entry):
    return int(_fields(entry)[1])
