"""Cgroups that a test created, and the processes that are still in them."""

import errno
import os
import signal
from pathlib import Path

from waiting import wait_for

_ROOT = Path("/sys/fs/cgroup")
# To a frozen process SIGKILL is no more than a promise. The older kernel interface first, then the newer one.
_THAW = (("freezer.state", "THAWED"), ("cgroup.freeze", "0"))


def remove(name, timeout=120.0):
    """Removes the top cgroup of this name in every hierarchy, with all below it; who is in there is killed.

    A daemon that was killed may leave a container it does not know any more: made but not started, or frozen.
    """

    def is_gone():
        for folder in _deepest_first(name):
            if not _is_removed(folder):
                _thaw(folder)
                _kill_all(folder)
        return not _deepest_first(name)

    def what():
        remaining = {str(folder): _processes(folder) for folder in _deepest_first(name)}
        return f"the cgroups {name} can be removed; left, with the processes in them: {remaining}"

    wait_for(is_gone, what, timeout)


def _deepest_first(name):
    """Only below that name: elsewhere other people's cgroups come and go while we look. `os.walk` minds none that goes."""
    tops = [_ROOT / name, *(hierarchy / name for hierarchy in _ROOT.iterdir())]
    return [Path(folder) for top in tops for folder, _, _ in os.walk(top, topdown=False)]


def _is_removed(folder):
    try:
        folder.rmdir()
    except OSError as error:
        return error.errno == errno.ENOENT
    return True


def _thaw(folder):
    for file, word in _THAW:
        try:
            # Not `write_text`, which would try to make a file that is not there.
            with (folder / file).open("r+") as state:
                state.write(word)
        except OSError:
            continue


def _kill_all(folder):
    for pid in _processes(folder):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _processes(folder):
    try:
        pids = [int(line) for line in (folder / "cgroup.procs").read_text().split()]
    except OSError:
        return []
    # Those of another process namespace are shown as 0, which to kill(2) means ourselves.
    return [pid for pid in pids if pid > 0]
