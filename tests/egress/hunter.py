"""Looks for a text everywhere a sandbox can look: `python3 hunter.py < NEEDLES`, run as root inside; prints as JSON where.

Each line of its input is a needle written backwards, so that nobody who merely passes it on has the text itself. What it could
not read is counted, so that a test can see that it looked.
"""

import json
import os
import stat
import sys

# Larger files are read in pieces of this size, which overlap.
PIECE = 1 << 22


def in_stream(stream, needles, limit=None):
    tail, read = b"", 0
    longest = max(map(len, needles))
    while limit is None or read < limit:
        piece = stream.read(PIECE if limit is None else min(PIECE, limit - read))
        if not piece:
            return False
        read += len(piece)
        if any(needle in tail + piece for needle in needles):
            return True
        tail = piece[-longest:]
    return False


def files(needles, report):
    """Every file there is, its name and its attributes among it. /usr is the host's and was there before any secret."""
    for folder, folders, names in os.walk("/"):
        folders[:] = [one for one in folders if os.path.join(folder, one) not in ("/proc", "/sys", "/usr")]
        for name in names:
            path = os.path.join(folder, name)
            try:
                if not stat.S_ISREG(os.lstat(path).st_mode):
                    continue
                with open(path, "rb") as file:
                    if in_stream(file, needles):
                        report["found"].append(path)
                report["files"] += 1
            except OSError:
                report["unread"].append(path)


def processes(needles, report):
    """Variables, arguments and memory of every process, the first one among them."""
    for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
        if pid == os.getpid():
            continue
        for name in ("environ", "cmdline"):
            try:
                with open(f"/proc/{pid}/{name}", "rb") as file:
                    if in_stream(file, needles):
                        report["found"].append(f"/proc/{pid}/{name}")
            except OSError:
                report["unread"].append(f"/proc/{pid}/{name}")
        memory(pid, needles, report)


def memory(pid, needles, report):
    try:
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
            for line in maps:
                span, rights = line.split()[:2]
                if "r" not in rights or line.rstrip().endswith(("[vvar]", "[vsyscall]", "[vvar_vclock]")):
                    continue
                begin, end = (int(part, 16) for part in span.split("-"))
                mem.seek(begin)
                try:
                    if in_stream(mem, needles, end - begin):
                        report["found"].append(f"/proc/{pid}/mem")
                except OSError:
                    report["unread"].append(f"/proc/{pid}/mem {line.strip()}")
        report["memories"].append(pid)
    except OSError:
        report["unread"].append(f"/proc/{pid}/mem")


if __name__ == "__main__":
    expected = [line.strip()[::-1].encode() for line in sys.stdin if line.strip()]
    outcome = {"found": [], "unread": [], "files": 0, "memories": []}
    files(expected, outcome)
    processes(expected, outcome)
    print(json.dumps(outcome))
