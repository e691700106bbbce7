"""Resources that the host has once for all sandboxes: one sandbox gets a small share, and neighbours get theirs."""

import json
from pathlib import Path

# Opens terminals until the kernel refuses, prints how many, and keeps them.
TERMINALS = """
import os, json, time
opened = []
try:
    while len(opened) < 1000: opened.append(os.openpty())
except OSError:
    pass
print(json.dumps(len(opened)), flush=True)
time.sleep(600)
"""


def test_terminals_are_bounded_for_each_sandbox(make, api):
    greedy, neighbour = make(), make()
    api.write(greedy, "/tmp/terminals.py", TERMINALS)
    command = "setsid python3 /tmp/terminals.py >/tmp/count & until [ -s /tmp/count ]; do sleep 0.05; done; cat /tmp/count"
    assert json.loads(api.run(greedy, command, timeout=120)["stdout"]) == 32
    assert api.run(neighbour, "python3 -c 'import os; os.openpty()'")["exit_code"] == 0


def test_one_process_cannot_open_more_than_its_share_of_the_hosts_files(make, api):
    host = int(Path("/proc/sys/fs/file-max").read_text())
    limit = int(api.run(make(), "ulimit -Hn")["stdout"])
    assert limit <= max(1024, min(65536, host // 16))


def test_memory_in_sockets_is_a_sixteenth_of_the_memory_limit(server, make):
    sandbox = make(memory_limit="512m")
    # Only version 1 of cgroups counts it apart; in version 2 it is part of the memory limit.
    for group in Path("/sys/fs/cgroup").glob(f"memory/sandyard-*/*"):
        file = group / "memory.kmem.tcp.limit_in_bytes"
        if file.exists() and int((group / "memory.limit_in_bytes").read_text()) == 512 << 20:
            assert int(file.read_text()) == 32 << 20
    assert sandbox
