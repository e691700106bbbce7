"""The TCP ports that some processes of this host listen on."""

import os
from pathlib import Path

_LISTEN = "0A"


def listening(*pids):
    """Addresses as the kernel writes them, of these processes and their children."""
    open_files = {link for pid in _with_children(pids) for link in _open_files(pid)}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            parts = line.split()
            if parts[3] == _LISTEN and f"socket:[{parts[9]}]" in open_files:
                found.add(parts[1])
    return found


def _with_children(pids):
    waiting, found = list(pids), set()
    while waiting:
        pid = waiting.pop()
        found.add(pid)
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            waiting += [child for child in map(int, _columns(children)) if child not in found]
    return found


def _columns(file):
    try:
        return file.read_text().split()
    except OSError:
        return []  # Threads come and go.


def _open_files(pid):
    try:
        numbers = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return []  # It has ended meanwhile.
    return [link for number in numbers if (link := _link(f"/proc/{pid}/fd/{number}"))]


def _link(path):
    try:
        return os.readlink(path)
    except OSError:
        return None  # Files come and go, and the others stay.
