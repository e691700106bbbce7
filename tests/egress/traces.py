"""Looks for a text on the host: in a server's data directory, its database and logs, and in processes of a sandbox."""

import contextlib
import errno
import os
from pathlib import Path

import hunter


def in_data_dir(data, *needles):
    """Files of a data directory that hold one of the needles; holes of sparse files are passed over."""
    needles = [needle.encode() for needle in needles]
    locations = [data.path, (data.path / "run").resolve()]
    found, count = [], 0
    for location in locations:
        for folder, _, names in os.walk(location):
            for path in (Path(folder) / name for name in names):
                if path.is_file() and not path.is_symlink():
                    count += 1
                    if _holds(path, needles):
                        found.append(str(path.relative_to(location)))
    assert count > 0, "there is nothing in the data directory"
    return found


def _holds(path, needles):
    try:
        with path.open("rb", buffering=0) as file:
            size, at = os.fstat(file.fileno()).st_size, 0
            while at < size:
                try:
                    begin = os.lseek(file.fileno(), at, os.SEEK_DATA)
                except OSError:
                    return False
                at = os.lseek(file.fileno(), begin, os.SEEK_HOLE)
                os.lseek(file.fileno(), begin, os.SEEK_SET)
                if hunter.in_stream(file, needles, at - begin):
                    return True
    except OSError as error:
        # It went, or became shorter, while we looked.
        if error.errno not in (errno.ENOENT, errno.ENXIO):
            raise
    return False


def in_processes(pids, *needles):
    """Of these processes of the host, those that hold one of the needles in variables, arguments or memory."""
    report = {"found": [], "unread": [], "memories": []}
    for pid in pids:
        hunter.memory(pid, [needle.encode() for needle in needles], report)
    assert report["memories"], f"no process could be read: {report}"
    return report["found"]


def _children(pid):
    """Those of all its threads; threads and processes may end while we look."""
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                found += [int(child) for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
    except OSError:
        pass
    return found


def of_sandbox(server, api, sandbox):
    """The host's numbers of a sandbox's first process and all below it."""
    instance = api.info(sandbox)["provider_sandbox_id"]
    first = next(one["init"]["pid"] for one in server.data.instances() if one["id"] == instance)
    found, at = [first], 0
    while at < len(found):
        found += _children(found[at])
        at += 1
    return found
